// The strategy for more tensors than memory: one operator at a time in a virtual pool that is
// larger than device memory (row D4).
//
// As on demand (on_demand.h), results are made before an operator runs and forgotten when their
// last reader has run. But tensors are blocks of a pager (paging/pager.h): before each launch its
// operands are made resident in one arena of `capacity` bytes, and what has to go is written to
// pinned host memory. Three streams: kernels, copies out, copies in. What has to wait for what is
// told from the bytes that commands touch (paging/access_order.h).
//
//   compute   conv1 ─────── relu1 ── conv2 ────────── ...
//   out                ╰─ x ────────╮                       x made room
//   in                              ╰─ w3 ─────╮            for w3, which conv3 will need
//
// Host memory for the whole virtual pool is taken before the first step, so that too little of it
// is an error at the start and not in the middle of one. It is gone with the process, however
// that ends.
//
// It computes the bits that the other strategies compute, whatever the policy and the capacity.
#pragma once

#include "plimsoll/runtime/executor.h"
#include "plimsoll/runtime/paging/pager.h"

namespace plimsoll::runtime {

// kDoesNotFit where one operator's operands exceed the capacity (it is named), or where host memory
// does not hold the pool.
Result<std::unique_ptr<Executor>> make_paged(ir::Graph graph, const PagingOptions& paging,
                                             const ExecutorOptions& options);

}  // namespace plimsoll::runtime
