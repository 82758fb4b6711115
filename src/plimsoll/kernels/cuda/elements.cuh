// Element types inside our own kernels: memory in T, arithmetic in float (64-bit integers stay
// what they are).
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "plimsoll/kernels/cuda/launch.h"

namespace plimsoll::kernels::cuda {

__device__ __forceinline__ float wide(float x) {
  return x;
}
__device__ __forceinline__ float wide(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
__device__ __forceinline__ float wide(__half x) {
  return __half2float(x);
}
__device__ __forceinline__ std::int64_t wide(std::int64_t x) {
  return x;
}
__device__ __forceinline__ std::int64_t wide(std::int32_t x) {
  return x;
}

template <typename T, typename Wide>
__device__ __forceinline__ T narrow(Wide x) {
  return static_cast<T>(x);
}
template <>
__device__ __forceinline__ __nv_bfloat16 narrow<__nv_bfloat16, float>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ __forceinline__ __half narrow<__half, float>(float x) {
  return __float2half_rn(x);
}

// float for floats, int64 for integers.
template <typename T>
using WideOf = decltype(wide(T()));

// Calls make(T()) with the element's type. Floats only, or integers too.
template <typename Make>
void for_float(Element type, const Make& make) {
  switch (type) {
    case Element::kBF16:
      return make(__nv_bfloat16());
    case Element::kF16:
      return make(__half());
    default:
      return make(float());
  }
}
template <typename Make>
void for_element(Element type, const Make& make) {
  switch (type) {
    case Element::kI64:
      return make(std::int64_t());
    case Element::kI32:
      return make(std::int32_t());
    default:
      return for_float(type, make);
  }
}
// Calls make(T(), P()) where parameters are T or fp32.
template <typename Make>
void for_parameter(Element type, Element parameter, const Make& make) {
  for_float(type, [&](auto element) {
    if (parameter == type) {
      make(element, element);
    } else {
      make(element, float());
    }
  });
}
// Calls make with an unsigned word of this many bytes.
template <typename Make>
void for_width(std::int64_t width, const Make& make) {
  switch (width) {
    case 1:
      return make(std::uint8_t());
    case 2:
      return make(std::uint16_t());
    case 4:
      return make(std::uint32_t());
    default:
      return make(std::uint64_t());
  }
}

constexpr int kBlockThreads = 256;

// A grid of one thread per element, or as many as a grid may have: kernels stride over it.
inline unsigned blocks_for(std::int64_t count, int threads = kBlockThreads) {
  const std::int64_t blocks = (count + threads - 1) / threads;
  constexpr std::int64_t kMost = 1 << 20;
  return static_cast<unsigned>(blocks < 1 ? 1 : blocks > kMost ? kMost : blocks);
}

#define PLIMSOLL_GRID_LOOP(i, count)                                                      \
  for (std::int64_t i = blockIdx.x * static_cast<std::int64_t>(blockDim.x) + threadIdx.x; \
       i < (count); i += gridDim.x * static_cast<std::int64_t>(blockDim.x))

// Ways to merge: a sum, and the largest, where a NaN wins.
struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct Larger {
  __device__ float operator()(float a, float b) const { return a != a || a > b ? a : b; }
};

// What all threads of a block hold, merged in a fixed order; every thread gets the result.
// `shared` has a place for each of the block's warps.
template <typename State, typename Merge>
__device__ State merge_block(State mine, State* shared, const Merge& merge) {
  for (int distance = 16; distance > 0; distance /= 2) {
    State other;
    unsigned words[sizeof(State) / 4];
    for (int i = 0; i < static_cast<int>(sizeof(State) / 4); ++i) {
      words[i] =
          __shfl_down_sync(0xffffffffU, reinterpret_cast<const unsigned*>(&mine)[i], distance);
      reinterpret_cast<unsigned*>(&other)[i] = words[i];
    }
    mine = merge(mine, other);
  }
  const int warp = threadIdx.x / 32;
  const int warps = (blockDim.x + 31) / 32;
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared[warp] = mine;
  __syncthreads();
  State out = shared[0];
  for (int i = 1; i < warps; ++i) out = merge(out, shared[i]);
  return out;
}

}  // namespace plimsoll::kernels::cuda
