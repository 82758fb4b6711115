// Element-by-element loops over contiguous ranges, for fp32 and bf16 (computed in float).
//
// `omp simd` says that iterations are independent; that is true also when an output lies exactly
// over an input, which is the only overlap a kernel is ever given. Without it the compiler's own
// overlap test would send every in-place call down the scalar path.
#pragma once

#include <type_traits>

#include "plimsoll/kernels/cpu/parallel.h"
#include "plimsoll/kernels/cpu/site.h"
#include "plimsoll/kernels/cpu/vectorize.h"

namespace plimsoll::kernels {

template <typename T, typename F>
PLIMSOLL_VECTORIZED void map_range(const T* x, T* y, std::int64_t n, F f) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) store(y[i], f(load(x[i])));
}

template <typename T, typename F>
PLIMSOLL_VECTORIZED void map_ranges(const T* a, const T* b, T* y, std::int64_t n, F f) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) store(y[i], f(load(a[i]), load(b[i])));
}

// Elements a buffer of this type holds, padding of blocked layouts included.
inline std::int64_t stored_elements(const ir::TensorType& type) {
  return ir::bytes_of(type).value * 8 / ir::bits(type.dtype);
}

// Calls `make` with a value of the element type, or gives null when it is neither fp32 nor bf16.
template <typename Make>
std::unique_ptr<Kernel> for_float_type(ir::DType dtype, const Make& make) {
  if (dtype == ir::DType::kF32) return make(float{});
  if (dtype == ir::DType::kBF16) return make(Bf16{});
  return nullptr;
}

// y = f(x); all tensors lie alike.
template <typename F>
std::unique_ptr<Kernel> mapped(const Site& site, F f) {
  if (site.in(0) != site.out()) return nullptr;
  return for_float_type(site.out().dtype, [&](auto element) {
    using T = decltype(element);
    const std::int64_t count = stored_elements(site.out());
    return make_kernel(site, [=](const Arguments& a) {
      parallel_ranges(count, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
        map_range(input<T>(a, 0) + begin, output<T>(a) + begin, end - begin, f);
      });
    });
  });
}

// y = f(a, b); all tensors lie alike.
template <typename F>
std::unique_ptr<Kernel> mapped_pair(const Site& site, F f) {
  if (site.in(0) != site.out() || site.in(1) != site.out()) return nullptr;
  return for_float_type(site.out().dtype, [&](auto element) {
    using T = decltype(element);
    const std::int64_t count = stored_elements(site.out());
    return make_kernel(site, [=](const Arguments& a) {
      parallel_ranges(count, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
        map_ranges(input<T>(a, 0) + begin, input<T>(a, 1) + begin, output<T>(a) + begin,
                   end - begin, f);
      });
    });
  });
}

}  // namespace plimsoll::kernels
