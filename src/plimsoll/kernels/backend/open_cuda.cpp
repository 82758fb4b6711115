#include <dlfcn.h>

#include "plimsoll/base/shared_library.h"
#include "plimsoll/kernels/backend/cuda_library.h"

namespace plimsoll::kernels {
namespace {

constexpr SharedLibrary kCuda{
    "libplimsoll_cuda.so", "PLIMSOLL_CUDA_LIBRARY", "CUDA",
    "this build has no CUDA (it is built where nvcc and cuDNN are found, see docs/cuda.md)"};

}  // namespace

Result<std::shared_ptr<Backend>> open_cuda_backend(const CudaOptions& options) {
  PLIMSOLL_TRY(void* const library, open_beside_program(kCuda));
  const auto build = reinterpret_cast<CudaLibraryBuild>(::dlsym(library, kCudaLibraryBuild));
  const auto open = reinterpret_cast<CudaLibraryOpen>(::dlsym(library, kCudaLibraryOpen));
  if (build == nullptr || open == nullptr || build() != cuda_library_build())
    return fail(ErrorCode::kDevice,
                "CUDA: the {} that was found was not built together with this program", kCuda.file);
  Result<std::shared_ptr<Backend>> out{std::shared_ptr<Backend>()};
  open(options, out);
  return out;
}

}  // namespace plimsoll::kernels
