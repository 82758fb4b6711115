#include "plimsoll/dist/open_communicator.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "plimsoll/dist/communicator_library.h"

namespace plimsoll::dist {
namespace {

struct Library {
  const char* file;
  const char* variable;
  const char* what;  // "MPI"
  const char* build;
  const char* open;
  const char* remedy;
};
constexpr Library kMpi{"libplimsoll_mpi.so",
                       "PLIMSOLL_MPI_LIBRARY",
                       "MPI",
                       kMpiBuild,
                       kMpiOpen,
                       "this build has no MPI (it is built where libopenmpi-dev is installed, see "
                       "docs/ranks.md)"};
constexpr Library kNccl{"libplimsoll_nccl.so",
                        "PLIMSOLL_NCCL_LIBRARY",
                        "NCCL",
                        kNcclBuild,
                        kNcclOpen,
                        "this build has no NCCL (it is built where nccl.h is found, see "
                        "docs/ranks.md)"};

std::vector<std::string> places_of(const Library& library) {
  if (const char* given = std::getenv(library.variable); given != nullptr && *given != '\0')
    return {given};
  std::vector<std::string> out;
  std::error_code code;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", code);
  if (!code) {
    const std::filesystem::path folder = program.parent_path();
    out.push_back(folder / library.file);
    out.push_back(folder.parent_path() / library.file);  // tests lie one folder below
    out.push_back(folder.parent_path() / "lib" / library.file);
  }
  out.emplace_back(library.file);
  return out;
}

// Never closed: MPI and NCCL keep threads and tables inside. A file that is there but cannot be
// opened says why.
Result<void*> opened(const Library& library) {
  std::string why;
  for (const std::string& place : places_of(library)) {
    std::error_code code;
    const bool named = place.find('/') != std::string::npos;
    if (named && !std::filesystem::exists(place, code)) continue;
    if (void* handle = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    const char* said = ::dlerror();
    if (named && why.empty() && said != nullptr) why = said;
  }
  if (!why.empty()) return fail(ErrorCode::kDevice, "{}: {}", library.what, why);
  return fail(ErrorCode::kDevice, "{}: {} is not beside the program: {}", library.what,
              library.file, library.remedy);
}

template <typename Open>
Result<Open> entry_of(const Library& library) {
  PLIMSOLL_TRY(void* const handle, opened(library));
  const auto build = reinterpret_cast<LibraryBuild>(::dlsym(handle, library.build));
  const auto open = reinterpret_cast<Open>(::dlsym(handle, library.open));
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

Result<std::shared_ptr<Communicator>> open_mpi(const MpiOptions& options) {
  PLIMSOLL_TRY(const auto open, entry_of<MpiOpen>(kMpi));
  Opened out{std::shared_ptr<Communicator>()};
  open(options, out);
  return out;
}

Result<std::shared_ptr<Communicator>> open_nccl(const std::shared_ptr<Communicator>& host,
                                                int card) {
  PLIMSOLL_TRY(const auto open, entry_of<NcclOpen>(kNccl));
  Opened out{std::shared_ptr<Communicator>()};
  open(host, card, out);
  return out;
}

}  // namespace plimsoll::dist
