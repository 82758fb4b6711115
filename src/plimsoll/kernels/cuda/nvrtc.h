// CUDA source to a kernel that can be launched, with NVRTC.
//
// Compiling takes 50 to 100 ms and needs no GPU; loading needs one. Both happen when kernels are
// made. A source that was compiled before in this process is not compiled again: the models of the
// zoo have some 20 different pointwise kernels among a thousand nodes.
#pragma once

#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "plimsoll/base/result.h"

namespace plimsoll::kernels::cuda {

// Machine code of the source for an architecture such as "sm_90". An error holds the compiler's
// log: what we generate does not compile, which is a bug of ours.
Result<std::vector<char>> compile_source(const std::string& source,
                                         const std::string& architecture);

// The function `name` of the source, for the current device.
Result<cudaKernel_t> load_source(const std::string& source, const char* name);

// "sm_90" for the current device, and how many multiprocessors it has.
struct CurrentDevice {
  std::string architecture;
  int multiprocessors = 1;
};
Result<CurrentDevice> current_device();

}  // namespace plimsoll::kernels::cuda
