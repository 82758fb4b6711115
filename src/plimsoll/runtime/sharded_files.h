// Checkpoints of ranks that share state: a file has whole tensors, under the names they would have
// without ranks (ops/collective/shard.h), so that any number of ranks goes on from it, shared or
// not.
//
// Saving is a collective: every rank calls it, the one that writes gets the parts of all. Resuming
// is not: each rank reads its part of every tensor. Both take the memory of one bucket, or of one
// tensor, beside the arena. A large tensor that ranks share in pieces is several states, which are
// saved and read together.
#pragma once

#include <vector>

#include "plimsoll/dist/communicator.h"
#include "plimsoll/ops/collective/shard.h"
#include "plimsoll/runtime/executor.h"
#include "plimsoll/store/npz.h"

namespace plimsoll::runtime {

// `out` is null on ranks that do not write.
Status save_parts(Executor& executor, const std::vector<ops::ShardedState>& states,
                  dist::Communicator& ranks, store::NpzWriter* out);
Status read_parts(Executor& executor, const std::vector<ops::ShardedState>& states, int rank,
                  const store::NpzFile& file);

}  // namespace plimsoll::runtime
