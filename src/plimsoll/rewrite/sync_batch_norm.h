// Batch norm over the examples of all ranks: the statistics of n ranks of batch b are those of one
// process with batch n·b, so losses are too.
//
// Each rank takes the mean m and the variance v of its own examples. Theirs all together:
//
//   (_, m, v) = batch_norm(x, gamma, beta)       its result itself is not read
//   M = all_reduce(m) / n
//   V = all_reduce(v + (m - M)²) / n             differences are small: nothing cancels
//   y = batch_norm_inference(x, gamma, beta, M, V)
//
// It is done to the forward graph. all_reduce has a gradient, and so have the statistics, so the
// backward pass follows. That costs two sums there and two more back for every norm, which wait for
// nothing else, and memory for what the fused gradient would not keep.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/ops/collective/collective.h"

namespace plimsoll::rewrite {

// `how.ranks` > 1. Every batch_norm of the graph; running statistics follow those of all ranks.
Result<ir::Graph> sync_batch_norm(const ir::Graph& forward, const ops::CollectiveOptions& how);

}  // namespace plimsoll::rewrite
