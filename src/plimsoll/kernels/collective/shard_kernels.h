// The kernels of ranks that share runs of tensors (ops/collective/shard.h).
//
// Tensors of a run that lie side by side are one message; in other memory than a plan's
// (`side_by_side` off), where they may lie so on one rank and not on another, each is one. No copy
// is made: each rank's part of such a stretch of the run is what of it falls into the rank's part.
#pragma once

#include <memory>

#include "plimsoll/dist/communicator.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/kernels/kernel.h"

namespace plimsoll::kernels {

std::unique_ptr<Kernel> make_shard_kernel(const std::shared_ptr<dist::Communicator>& communicator,
                                          const ir::Graph& graph, const ir::Node& node,
                                          bool side_by_side);

}  // namespace plimsoll::kernels
