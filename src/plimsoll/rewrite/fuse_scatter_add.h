// add(a, gather_grad(dy, indices)) becomes gather_grad(dy, indices, a).
//
// A table that is used twice, as GPT-2's embedding is for its first and its last layer, has two
// gradients of its full size, and their sum waits for the second. Adding the rows of the second
// straight into the first needs neither the second table nor the pass over it: 147 MiB less at the
// end of GPT-2's backward pass.
//
// Rows that meet are added one by one to the sum instead of to each other first, so the last bits
// may differ from those of the two gradients added; they are the same in every plan.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

// Only where the add is the one reader of both.
Result<ir::Graph> fuse_scatter_add(const ir::Graph& graph);

}  // namespace plimsoll::rewrite
