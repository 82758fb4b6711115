// How CUDA kernels are made: on which device, and with which arithmetic.
#pragma once

namespace plimsoll::kernels::cuda {

struct CudaKernelOptions {
  bool tf32 = false;  // products and convolutions of fp32 may round their operands to TF32
  int device = 0;
};

}  // namespace plimsoll::kernels::cuda
