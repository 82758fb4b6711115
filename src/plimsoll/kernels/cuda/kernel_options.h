// How CUDA kernels are made: on which device, and with which arithmetic.
#pragma once

#include "plimsoll/kernels/cuda/engine_trail.h"

namespace plimsoll::kernels::cuda {

struct CudaKernelOptions {
  bool tf32 = false;  // products and convolutions of fp32 may round their operands to TF32
  int device = 0;
  // Of the kernel that is being made: what it takes of the libraries, or has to take.
  EngineTrail* engines = nullptr;
};

}  // namespace plimsoll::kernels::cuda
