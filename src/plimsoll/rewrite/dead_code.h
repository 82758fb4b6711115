// Removes nodes whose results nobody reads: no output, no update and no other live node.
#pragma once

#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

// Values keep their order; ids change. Sources stay, read or not: they are the model's interface.
ir::Graph remove_dead_code(const ir::Graph& graph);

}  // namespace plimsoll::rewrite
