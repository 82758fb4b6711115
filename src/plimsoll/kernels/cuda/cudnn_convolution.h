// A convolution, its data gradient or its weight gradient by cuDNN's backend API.
//
// The backend API is what cudnn-frontend wraps: descriptors with attributes. One operation is a
// graph of one node; cuDNN lists engine configurations for it, best first (mode A, then fallback);
// the first one that passes is taken:
//   - it is deterministic, and does not round its inputs or its sums to less than the types say;
//   - fp32 without tf32 uses no tensor cores, and no Winograd tile above 4 x 4;
//   - its workspace is at most 32 MiB or half of the bytes of its tensors.
// The first choice of cuDNN is within 6 % of the best engine on all of resnet50; nothing is timed,
// so the choice is the same in every run. Where an engine is named (engine_trail.h), it is that one
// or an error, by the same rules. Plans are kept by description for the process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plimsoll/kernels/cuda/site.h"

namespace plimsoll::kernels::cuda {

enum class ConvolutionWay { kForward, kData, kWeight };

// Tensors have two or three spatial axes; strides in elements.
struct ConvolutionShape {
  ConvolutionWay way = ConvolutionWay::kForward;
  ir::DType dtype = ir::DType::kF32;
  std::vector<std::int64_t> x, x_steps;
  std::vector<std::int64_t> w, w_steps;
  std::vector<std::int64_t> y, y_steps;
  std::vector<std::int64_t> strides, dilations, begins, ends;
};

class CudnnConvolution {
 public:
  virtual ~CudnnConvolution() = default;
  virtual Bytes workspace() const = 0;
  virtual const std::string& engine()
      const = 0;  // its name (engine_trail.h); empty: cuDNN does not say
  // Two of the tensors are read, the third is written, as the way says.
  virtual void run(cudaStream_t stream, const std::byte* x, const std::byte* w, const std::byte* y,
                   std::byte* workspace) const = 0;
};

// Null where cuDNN has no engine that passes; an error where cuDNN itself cannot be used.
Result<std::shared_ptr<const CudnnConvolution>> make_cudnn_convolution(
    const ConvolutionShape& shape, const CudaKernelOptions& options);

}  // namespace plimsoll::kernels::cuda
