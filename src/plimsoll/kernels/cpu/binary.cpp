// Functions of two tensors with broadcasting.
#include <functional>

#include "plimsoll/kernels/cpu/elementwise.h"
#include "plimsoll/kernels/cpu/strided.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/ops/elementwise/binary_formulas.h"

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

// By value: a function object that takes references, as std::plus<> does, would have the loops of
// bf16 vectorised at half the width.
template <typename Function>
std::unique_ptr<Kernel> make_real(const Site& site) {
  return broadcast_pair(site, [](float a, float b) { return Function()(a, b); });
}

// Of reals and of integers.
template <typename Function>
std::unique_ptr<Kernel> make_arithmetic(const Site& site) {
  const ir::DType dtype = site.out().dtype;
  if (dtype != ir::DType::kI64 && dtype != ir::DType::kI32) return make_real<Function>(site);
  if (!all_unblocked(site) || site.out().shape.elements() == 0) return nullptr;
  return dtype == ir::DType::kI64 ? integer_pair<std::uint64_t>(site, Function())
                                  : integer_pair<std::uint32_t>(site, Function());
}

}  // namespace

std::span<const TableEntry> binary_kernels() {
  static constexpr TableEntry kRows[] = {
      {"accumulate", make_arithmetic<std::plus<>>}, {"add", make_arithmetic<std::plus<>>},
      {"add_relu", make_real<ops::AddRelu>},        {"div", make_real<ops::Quotient>},
      {"maximum", make_real<ops::Maximum>},         {"minimum", make_real<ops::Minimum>},
      {"mul", make_arithmetic<std::multiplies<>>},  {"pow", make_real<ops::RealPower>},
      {"sub", make_arithmetic<std::minus<>>},
  };
  return kRows;
}

}  // namespace plimsoll::kernels
