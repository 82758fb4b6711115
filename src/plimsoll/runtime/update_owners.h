// Whose memory a value lies in, for executors without a plan: an update's result is its input's
// next version, the same memory under the source's name. All other values own theirs.
#pragma once

#include <vector>

#include "plimsoll/ir/graph.h"

namespace plimsoll::runtime {

std::vector<ValueId> update_owners(const ir::Graph& graph);

}  // namespace plimsoll::runtime
