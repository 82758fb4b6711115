// What a factory of CUDA kernels sees, and the kernels that are one function of their arguments.
//
// A factory answers with a kernel, or with null when it does not take these types or layouts; the
// caller then says which operator and types have none. There is no fallback to the host: a silent
// copy of a tensor would be no plan.
#pragma once

#include <memory>
#include <utility>

#include <cuda_runtime_api.h>

#include "plimsoll/kernels/cuda/kernel_options.h"
#include "plimsoll/kernels/node_site.h"

namespace plimsoll::kernels::cuda {

struct Site : NodeSite {
  CudaKernelOptions options;
};

using Made = Result<std::unique_ptr<Kernel>>;
using Factory = Made (*)(const Site&);

struct KernelNeeds {
  Bytes scratch{0};
  bool in_place = true;
};

// body(arguments, stream) enqueues and returns.
template <typename Body>
class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(KernelNeeds needs, Body body) : needs_(needs), body_(std::move(body)) {}
  Bytes scratch() const override { return needs_.scratch; }
  bool in_place() const override { return needs_.in_place; }
  void run(const Arguments& a) override { body_(a, static_cast<cudaStream_t>(a.queue)); }

 private:
  KernelNeeds needs_;
  Body body_;
};

template <typename Body>
std::unique_ptr<Kernel> make_kernel(Body body, KernelNeeds needs = {}) {
  return std::make_unique<FunctionKernel<Body>>(needs, std::move(body));
}

// For nodes whose outputs are all empty, and for views that lie where they belong.
inline std::unique_ptr<Kernel> nothing_to_do() {
  return make_kernel([](const Arguments&, cudaStream_t) {});
}

// What a factory answers when it does not take the types.
inline Made no_kernel() {
  return std::unique_ptr<Kernel>();
}

// Offsets of several tensors in one scratch, each aligned as the device's arena is.
class ScratchLayout {
 public:
  static constexpr std::int64_t kScratchAlignment = 256;
  // Reserves bytes and says where they begin.
  std::int64_t add(std::int64_t bytes) {
    const std::int64_t at = size_;
    size_ += (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
    return at;
  }
  Bytes size() const { return Bytes(size_); }

 private:
  std::int64_t size_ = 0;
};

// fp32, bf16 or fp16: what row kernels, reductions and pooling are compiled for.
inline bool is_kernel_float(ir::DType dtype) {
  return dtype == ir::DType::kF32 || dtype == ir::DType::kBF16 || dtype == ir::DType::kF16;
}

inline std::int64_t width_of(ir::DType dtype) {
  return ir::bits(dtype) / 8;
}

}  // namespace plimsoll::kernels::cuda
