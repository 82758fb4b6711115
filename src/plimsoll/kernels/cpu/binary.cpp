// Functions of two tensors with broadcasting.
#include <cmath>

#include "plimsoll/kernels/cpu/elementwise.h"
#include "plimsoll/kernels/cpu/factories.h"
#include "plimsoll/kernels/cpu/strided.h"

namespace plimsoll::kernels {
namespace {

template <typename T, typename F>
PLIMSOLL_VECTORIZED void row_with_scalar(const T* a, float b, T* y, std::int64_t n, F f) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) store(y[i], f(load(a[i]), b));
}

template <typename T, typename F>
PLIMSOLL_VECTORIZED void scalar_with_row(float a, const T* b, T* y, std::int64_t n, F f) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) store(y[i], f(a, load(b[i])));
}

template <typename T, typename F>
void stepped_row(const T* a, std::int64_t step_a, const T* b, std::int64_t step_b, T* y,
                 std::int64_t n, F f) {
  for (std::int64_t i = 0; i < n; ++i) store(y[i], f(load(a[i * step_a]), load(b[i * step_b])));
}

template <typename T, typename F>
void binary_row(const T* a, std::int64_t step_a, const T* b, std::int64_t step_b, T* y,
                std::int64_t n, F f) {
  if (step_a == 1 && step_b == 1) {
    map_ranges(a, b, y, n, f);
  } else if (step_a == 1 && step_b == 0) {
    row_with_scalar(a, load(*b), y, n, f);
  } else if (step_a == 0 && step_b == 1) {
    scalar_with_row(load(*a), b, y, n, f);
  } else {
    stepped_row(a, step_a, b, step_b, y, n, f);
  }
}

template <typename F>
std::unique_ptr<Kernel> broadcast_pair(const Site& site, F f) {
  const ir::TensorType& out = site.out();
  if (site.in(0) == out && site.in(1) == out) return mapped_pair(site, f);
  if (site.in(0).dtype != out.dtype || site.in(1).dtype != out.dtype || out.shape.elements() == 0)
    return nullptr;
  if (!all_unblocked(site)) return nullptr;
  return for_float_type(out.dtype, [&](auto element) {
    using T = decltype(element);
    return make_kernel(site, [loop = broadcast_loop(site), f](const Arguments& a) {
      for_each_row(loop, [&](std::int64_t r, std::int64_t first, std::int64_t n) {
        binary_row(input<T>(a, 0) + loop.place(1, r, first), loop.row_step(1),
                   input<T>(a, 1) + loop.place(2, r, first), loop.row_step(2),
                   output<T>(a) + loop.place(0, r, first), n, f);
      });
    });
  });
}

// Integers of `Word`, an unsigned type, which wraps around.
template <typename Word, typename F>
std::unique_ptr<Kernel> integer_pair(const Site& site, F f) {
  return make_kernel(site, [loop = broadcast_loop(site), f](const Arguments& a) {
    for_each_row(loop, [&](std::int64_t r, std::int64_t first, std::int64_t n) {
      const Word* left = input<Word>(a, 0) + loop.place(1, r, first);
      const Word* right = input<Word>(a, 1) + loop.place(2, r, first);
      Word* y = output<Word>(a) + loop.place(0, r, first);
      for (std::int64_t i = 0; i < n; ++i)
        y[i] = f(left[i * loop.row_step(1)], right[i * loop.row_step(2)]);
    });
  });
}

template <typename Word>
std::unique_ptr<Kernel> make_integer_binary_of(const Site& site) {
  const std::string_view op = site.node.op;
  if (op == "add" || op == "accumulate")
    return integer_pair<Word>(site, [](Word a, Word b) { return a + b; });
  if (op == "sub") return integer_pair<Word>(site, [](Word a, Word b) { return a - b; });
  if (op == "mul") return integer_pair<Word>(site, [](Word a, Word b) { return a * b; });
  return nullptr;
}

std::unique_ptr<Kernel> make_integer_binary(const Site& site) {
  if (!all_unblocked(site) || site.out().shape.elements() == 0) return nullptr;
  return site.out().dtype == ir::DType::kI64 ? make_integer_binary_of<std::uint64_t>(site)
                                             : make_integer_binary_of<std::uint32_t>(site);
}

}  // namespace

std::unique_ptr<Kernel> make_binary(const Site& site) {
  const std::string_view op = site.node.op;
  if (site.out().dtype == ir::DType::kI64 || site.out().dtype == ir::DType::kI32)
    return make_integer_binary(site);
  if (op == "add" || op == "accumulate")
    return broadcast_pair(site, [](float a, float b) { return a + b; });
  if (op == "sub") return broadcast_pair(site, [](float a, float b) { return a - b; });
  if (op == "mul") return broadcast_pair(site, [](float a, float b) { return a * b; });
  if (op == "div") return broadcast_pair(site, [](float a, float b) { return a / b; });
  if (op == "maximum")
    return broadcast_pair(site, [](float a, float b) { return a >= b || a != a ? a : b; });
  if (op == "minimum")
    return broadcast_pair(site, [](float a, float b) { return a <= b || a != a ? a : b; });
  if (op == "pow") return broadcast_pair(site, [](float a, float b) { return std::pow(a, b); });
  if (op == "add_relu") {
    return broadcast_pair(site, [](float a, float b) {
      const float sum = a + b;
      return sum < 0.0F ? 0.0F : sum;
    });
  }
  return nullptr;
}

}  // namespace plimsoll::kernels
