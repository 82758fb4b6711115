// Ranks that are processes of one machine, without MPI: forked, with a page of memory in common.
//
//   run_forked_ranks(2, [](const std::shared_ptr<Communicator>& comm) { ...; return 0; });
//
// Enough of a communicator for others to meet through (NCCL's needs a broadcast of 128 bytes, and
// tests gather numbers): it gathers and broadcasts host memory and sums nothing. Must be called
// before the process starts threads or opens a device. A rank that takes longer than a minute is
// ended.
#pragma once

#include <functional>
#include <memory>

#include "plimsoll/dist/communicator.h"

namespace plimsoll::dist {

// How many ranks returned or ended with something else than 0.
int run_forked_ranks(int ranks,
                     const std::function<int(const std::shared_ptr<Communicator>&)>& body);

}  // namespace plimsoll::dist
