#include "plimsoll/dist/open_communicator.h"

#include <dlfcn.h>

#include <cstdlib>

#include "plimsoll/base/shared_library.h"
#include "plimsoll/dist/communicator_library.h"

namespace plimsoll::dist {
namespace {

constexpr SharedLibrary kMpi{
    "libplimsoll_mpi.so", "PLIMSOLL_MPI_LIBRARY", "MPI",
    "this build has no MPI (it is built where libopenmpi-dev is installed, see docs/ranks.md)"};
constexpr SharedLibrary kNccl{
    "libplimsoll_nccl.so", "PLIMSOLL_NCCL_LIBRARY", "NCCL",
    "this build has no NCCL (it is built where nccl.h is found, see docs/ranks.md)"};

template <typename Open>
Result<Open> entry_of(const SharedLibrary& library, const char* build_name, const char* open_name) {
  PLIMSOLL_TRY(void* const handle, open_beside_program(library));
  const auto build = reinterpret_cast<LibraryBuild>(::dlsym(handle, build_name));
  const auto open = reinterpret_cast<Open>(::dlsym(handle, open_name));
  if (build == nullptr || open == nullptr || build() != communicator_library_build())
    return fail(ErrorCode::kDevice,
                "{}: the {} that was found was not built together with this program", library.what,
                library.file);
  return open;
}

}  // namespace

bool started_as_rank() {
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    if (std::getenv(variable) != nullptr) return true;
  }
  return false;
}

int tasks_without_mpi() {
  const char* const tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  if (tasks == nullptr || started_as_rank()) return 0;
  const long count = std::strtol(tasks, nullptr, 10);
  return count > 1 && count < 1 << 30 ? static_cast<int>(count) : 0;
}

Status find_mpi() {
  const auto found = entry_of<MpiOpen>(kMpi, kMpiBuild, kMpiOpen);
  return found ? Status() : Status(forward(found));
}

Result<std::shared_ptr<Communicator>> open_mpi(const MpiOptions& options) {
  PLIMSOLL_TRY(const auto open, entry_of<MpiOpen>(kMpi, kMpiBuild, kMpiOpen));
  Opened out{std::shared_ptr<Communicator>()};
  open(options, out);
  return out;
}

Result<std::shared_ptr<Communicator>> open_nccl(const std::shared_ptr<Communicator>& host,
                                                int card) {
  PLIMSOLL_TRY(const auto open, entry_of<NcclOpen>(kNccl, kNcclBuild, kNcclOpen));
  Opened out{std::shared_ptr<Communicator>()};
  open(host, card, out);
  return out;
}

}  // namespace plimsoll::dist
