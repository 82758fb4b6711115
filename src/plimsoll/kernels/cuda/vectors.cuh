// Sixteen bytes of neighbours, loaded and stored at once and computed with in float.
#pragma once

#include "plimsoll/kernels/cuda/elements.cuh"

namespace plimsoll::kernels::cuda {

template <typename T>
constexpr int kVectorSize = 16 / static_cast<int>(sizeof(T));

template <typename T>
struct Vector {
  alignas(16) T values[kVectorSize<T>];

  __device__ __forceinline__ void load(const T* from) {
    *reinterpret_cast<uint4*>(values) = *reinterpret_cast<const uint4*>(from);
  }
  __device__ __forceinline__ void store(T* to) const {
    *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(values);
  }
  __device__ __forceinline__ float at(int v) const { return wide(values[v]); }
  __device__ __forceinline__ void set(int v, float value) { values[v] = narrow<T>(value); }
};

}  // namespace plimsoll::kernels::cuda
