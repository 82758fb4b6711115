// The kernels of every form.
#pragma once

#include "plimsoll/kernels/cuda/coded_blocks.cuh"
#include "plimsoll/kernels/cuda/coded_sparse.cuh"

namespace plimsoll::kernels::cuda {
namespace {

// A block of threads, a multiple of 32 and at most kMostThreads, for every block of the activation.
struct CodedKernels {
  void (*encode)(CodedActivation);
  void (*decode)(CodedActivation);
};

inline CodedKernels coded_kernels(CodedForm form) {
  switch (form) {
    case CodedForm::kCrumbs:
      return {encode_narrow<2>, decode_narrow<2>};
    case CodedForm::kNibbles:
      return {encode_narrow<4>, decode_narrow<4>};
    case CodedForm::kFp16:
      return {encode_small<Fp16Form>, decode_small<Fp16Form>};
    case CodedForm::kBf16:
      return {encode_small<Bf16Form>, decode_small<Bf16Form>};
    case CodedForm::kE4m3:
      return {encode_small<E4m3Form>, decode_small<E4m3Form>};
    case CodedForm::kE5m2:
      return {encode_small<E5m2Form>, decode_small<E5m2Form>};
    case CodedForm::kInt8:
      return {encode_int8, decode_int8};
    default:
      return {encode_sparse, decode_sparse};
  }
}

}  // namespace
}  // namespace plimsoll::kernels::cuda
