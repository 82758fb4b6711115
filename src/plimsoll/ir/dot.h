// A graph as Graphviz text: `plimsoll graph mlp --dot | dot -Tsvg -o mlp.svg`.
//
// Nodes are boxes coloured by phase, sources are ellipses coloured by kind, edges carry the
// tensor's type. An update is a dashed edge from the new version back to the source it replaces.
#pragma once

#include <string>

#include "plimsoll/ir/graph.h"

namespace plimsoll::ir {

std::string to_dot(const Graph& graph);

}  // namespace plimsoll::ir
