// Masks of one bit an element, lowest first: a thread to a byte.
#include "plimsoll/kernels/cuda/elements.cuh"

namespace plimsoll::kernels::cuda {
namespace {

template <typename T>
__global__ void mask_bytes(std::int64_t count, float low, float high, bool inclusive, const T* x,
                           std::uint8_t* mask) {
  PLIMSOLL_GRID_LOOP(byte, (count + 7) / 8) {
    unsigned bits = 0;
    for (int bit = 0; bit < 8; ++bit) {
      const std::int64_t i = byte * 8 + bit;
      if (i >= count) break;
      const float value = wide(x[i]);
      const bool inside = inclusive ? value >= low && value <= high : value > low && value <= high;
      if (inside) bits |= 1U << bit;
    }
    mask[byte] = static_cast<std::uint8_t>(bits);
  }
}

template <typename T>
__global__ void keep_masked(std::int64_t count, const T* x, const std::uint8_t* mask, T* y) {
  PLIMSOLL_GRID_LOOP(i, count) {
    const bool keep = (mask[i / 8] >> (i % 8)) & 1;
    y[i] = keep ? x[i] : narrow<T>(0.0F);
  }
}

}  // namespace

void mask_of_range(Element type, std::int64_t count, double low, double high, bool inclusive,
                   const void* x, void* mask, cudaStream_t stream) {
  for_float(type, [&](auto element) {
    using T = decltype(element);
    mask_bytes<T><<<blocks_for((count + 7) / 8), kBlockThreads, 0, stream>>>(
        count, static_cast<float>(low), static_cast<float>(high), inclusive,
        static_cast<const T*>(x), static_cast<std::uint8_t*>(mask));
  });
}

void apply_mask(Element type, std::int64_t count, const void* x, const void* mask, void* y,
                cudaStream_t stream) {
  for_float(type, [&](auto element) {
    using T = decltype(element);
    keep_masked<T><<<blocks_for(count), kBlockThreads, 0, stream>>>(
        count, static_cast<const T*>(x), static_cast<const std::uint8_t*>(mask),
        static_cast<T*>(y));
  });
}

}  // namespace plimsoll::kernels::cuda
