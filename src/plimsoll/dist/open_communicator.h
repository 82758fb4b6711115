// The communicator that this process was started with, and the libraries that bring one.
//
// libplimsoll_mpi.so and libplimsoll_nccl.so are opened on demand, as libplimsoll_cuda.so is
// (kernels/backend/backend.h): the program needs neither MPI nor NCCL, and is built without them
// where they are not found. They are looked for under the name in PLIMSOLL_MPI_LIBRARY and
// PLIMSOLL_NCCL_LIBRARY, else beside the program, in ../lib beside it, and where the system looks.
#pragma once

#include <memory>

#include "plimsoll/dist/communicator.h"

namespace plimsoll::dist {

// Whether mpirun, srun or their like started this process: they say so in the environment.
bool started_as_rank();
// Processes that srun started without MPI, so that none knows of the others; 0 where it did not.
int tasks_without_mpi();

struct MpiOptions {
  double silence_seconds = 6;   // a rank that is not heard of for so long has died or was stopped
  double patience_seconds = 8;  // a rank that lets others wait for so long, and 10 steps, hangs
};
// Whether open_mpi would find its library: asked before ranks are started that all would say it.
Status find_mpi();
// Joins the others. kDevice and one line where there is no library or MPI does not start.
Result<std::shared_ptr<Communicator>> open_mpi(const MpiOptions& options = {});

// For device memory of card `card`; `host` brings the ranks together and stays their way to talk.
Result<std::shared_ptr<Communicator>> open_nccl(const std::shared_ptr<Communicator>& host,
                                                int card);

}  // namespace plimsoll::dist
