// Operators that several ranks run together: the nodes of a graph that make it one of many.
//
//   all_reduce(x, ...)       sums over the ranks, of each tensor
//   reduce_scatter(x)        the same sum, of which each rank keeps its part along the first axis
//   all_gather(x)            the parts of all ranks, one behind the other along the first axis
//   broadcast(x)             rank 0's x
//
// They stand in the graph like any others, so that schedules, plans, reports and the verifier see
// them; they are never run a second time, because all ranks would have to. `ranks` says how many
// there are.
//
// Gradients. The loss is the sum over ranks of what each computes, so the gradient of a sum that
// everybody gets is the sum of everybody's gradients: all_reduce is its own gradient,
// reduce_scatter and all_gather are each other's, and broadcast has none: it hands out what a step
// begins with.
//
// The reference evaluation of one process stands for ranks that all hold the same: all_reduce
// multiplies by `ranks`. Tests with real ranks are in dist/ and api/.
//
// `fuse` marks reductions that may wait for others to be sent together (gradients), see
// rewrite/fuse_collectives.h; `order` = "fixed" adds in the order of ranks (dist/communicator.h).
#pragma once

#include <string_view>
#include <vector>

#include "plimsoll/ops/var.h"

namespace plimsoll::ir {
struct Node;
}

namespace plimsoll::ops {

struct CollectiveOptions {
  std::int64_t ranks = 1;
  bool fuse = false;
  bool fixed_order = false;
};

Var all_reduce(Var x, const CollectiveOptions& options);
Var reduce_scatter(Var x, const CollectiveOptions& options);
Var all_gather(Var x, const CollectiveOptions& options);
Var broadcast_ranks(Var x, const CollectiveOptions& options);

// These, and those of ranks that share tensors (shard.h).
bool is_collective(std::string_view op);
// How many tensors one node may reduce.
inline constexpr int kMostReduced = 1024;

}  // namespace plimsoll::ops
