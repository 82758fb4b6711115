// What libplimsoll_cuda.so and the program say to each other: two functions, found by name.
//
// Both are built from the same sources, and C++ values cross between them. So the library says
// first what it was built as: a number for this interface, mixed with the sizes of what crosses.
// One of another build is refused in words instead of crashing.
#pragma once

#include <cstdint>

#include "plimsoll/base/random.h"
#include "plimsoll/kernels/backend/backend.h"

namespace plimsoll::kernels {

// Exported by the library.
inline constexpr const char* kCudaLibraryBuild = "plimsoll_cuda_build";
inline constexpr const char* kCudaLibraryOpen = "plimsoll_cuda_open";
using CudaLibraryBuild = std::uint64_t (*)();
using CudaLibraryOpen = void (*)(const CudaOptions& options, Result<std::shared_ptr<Backend>>& out);

constexpr std::uint64_t cuda_library_build() {
  std::uint64_t out = 3;  // grows with this interface
  for (const std::size_t size : {sizeof(ir::Graph), sizeof(ir::Node), sizeof(ir::Value),
                                 sizeof(Arguments), sizeof(ActivationEncoding), sizeof(Overflow),
                                 sizeof(device::Command), sizeof(CudaOptions), sizeof(Error)})
    out = mix64(out + size);
  return out;
}

}  // namespace plimsoll::kernels
