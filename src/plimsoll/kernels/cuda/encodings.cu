// Launches the kernels that compress activations and decompress them.
#include <cstdint>

#include "plimsoll/kernels/cuda/coded_forms.cuh"
#include "plimsoll/kernels/cuda/launch.h"

namespace plimsoll::kernels::cuda {
namespace {

unsigned coded_blocks(const CodedActivation& a) {
  return static_cast<unsigned>((a.count + kCodedBlock - 1) / kCodedBlock);
}

}  // namespace

void encode_activation(CodedForm form, const CodedActivation& a, cudaStream_t stream) {
  if (a.count == 0) return;
  if (form == CodedForm::kSparse)  // what is claimed is counted from zero
    cudaMemsetAsync(a.buffer + (a.buffer_bytes / kUnit - 1) * kUnit, 0, kUnit, stream);
  coded_kernels(form).encode<<<coded_blocks(a), kMostThreads, 0, stream>>>(a);
}

void decode_activation(CodedForm form, const CodedActivation& a, cudaStream_t stream) {
  if (a.count == 0) return;
  coded_kernels(form).decode<<<coded_blocks(a), kMostThreads, 0, stream>>>(a);
}

}  // namespace plimsoll::kernels::cuda
