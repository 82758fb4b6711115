// Ranks that are threads of one process: collectives without MPI, for tests.
//
//   run_thread_ranks(3, [](dist::Communicator& comm) { ... });   // one call a rank, side by side
//
// Nothing is clever: a collective meets at a barrier, every rank reads the others' memory, and they
// meet again. abort() ends the process, as it would end all ranks.
#pragma once

#include <functional>
#include <memory>

#include "plimsoll/dist/communicator.h"

namespace plimsoll::dist {

void run_thread_ranks(int ranks,
                      const std::function<void(const std::shared_ptr<Communicator>&)>& body);

}  // namespace plimsoll::dist
