#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "plimsoll/kernels/backend/cuda_library.h"

namespace plimsoll::kernels {
namespace {

constexpr const char* kLibraryFile = "libplimsoll_cuda.so";

std::vector<std::string> library_places() {
  if (const char* given = std::getenv("PLIMSOLL_CUDA_LIBRARY"); given != nullptr && *given != '\0')
    return {given};
  std::vector<std::string> out;
  std::error_code code;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", code);
  if (!code) {
    const std::filesystem::path folder = program.parent_path();
    out.push_back(folder / kLibraryFile);
    out.push_back(folder.parent_path() / kLibraryFile);  // tests lie one folder below
    out.push_back(folder.parent_path() / "lib" / kLibraryFile);
  }
  out.emplace_back(kLibraryFile);
  return out;
}

// A file that is there but cannot be opened says why, for instance which library it lacks.
Result<void*> open_library() {
  std::string why;
  for (const std::string& place : library_places()) {
    std::error_code code;
    const bool named = place.find('/') != std::string::npos;
    if (named && !std::filesystem::exists(place, code)) continue;
    if (void* handle = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    const char* said = ::dlerror();
    if (named && why.empty() && said != nullptr) why = said;
  }
  if (!why.empty()) return fail(ErrorCode::kDevice, "CUDA: {}", why);
  const char* given = std::getenv("PLIMSOLL_CUDA_LIBRARY");
  if (given != nullptr && *given != '\0')
    return fail(ErrorCode::kDevice, "CUDA: PLIMSOLL_CUDA_LIBRARY names '{}', which is not there",
                given);
  return fail(ErrorCode::kDevice,
              "CUDA: {} is not beside the program: this build has no CUDA (it is built where nvcc "
              "and cuDNN are found, see docs/cuda.md)",
              kLibraryFile);
}

}  // namespace

Result<std::shared_ptr<Backend>> open_cuda_backend(const CudaOptions& options) {
  // Never closed: kernels and the driver keep threads and tables inside it.
  PLIMSOLL_TRY(void* const library, open_library());
  const auto build = reinterpret_cast<CudaLibraryBuild>(::dlsym(library, kCudaLibraryBuild));
  const auto open = reinterpret_cast<CudaLibraryOpen>(::dlsym(library, kCudaLibraryOpen));
  if (build == nullptr || open == nullptr || build() != cuda_library_build())
    return fail(ErrorCode::kDevice,
                "CUDA: the {} that was found was not built together with this program",
                kLibraryFile);
  Result<std::shared_ptr<Backend>> out{std::shared_ptr<Backend>()};
  open(options, out);
  return out;
}

}  // namespace plimsoll::kernels
