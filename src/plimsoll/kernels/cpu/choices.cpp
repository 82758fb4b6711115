// Comparisons, logic, tests and `where`: everything that makes or reads a bool (one byte, 0 or 1).
//
// Operands broadcast; a row of the loop runs with one step per operand, so the inner loops are
// plain and the compiler vectorises those with steps of 1 and 0.
#include <cmath>

#include "plimsoll/kernels/cpu/elementwise.h"
#include "plimsoll/kernels/cpu/factories.h"
#include "plimsoll/kernels/cpu/strided.h"

namespace plimsoll::kernels {
namespace {

using TruthByte = std::uint8_t;

template <typename T, typename F>
PLIMSOLL_VECTORIZED void compare_row(const T* a, std::int64_t step_a, const T* b,
                                     std::int64_t step_b, TruthByte* y, std::int64_t n, F f) {
  if (step_a == 1 && step_b == 1) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]) ? 1 : 0;
    return;
  }
  for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[i * step_a], b[i * step_b]) ? 1 : 0;
}

template <typename T, typename F>
std::unique_ptr<Kernel> compared(const Site& site, F f) {
  return make_kernel(site, [loop = broadcast_loop(site), f](const Arguments& arguments) {
    for_each_row(loop, [&](std::int64_t r, std::int64_t first, std::int64_t n) {
      compare_row(input<T>(arguments, 0) + loop.place(1, r, first), loop.row_step(1),
                  input<T>(arguments, 1) + loop.place(2, r, first), loop.row_step(2),
                  output<TruthByte>(arguments) + loop.place(0, r, first), n, f);
    });
  });
}

template <typename T>
std::unique_ptr<Kernel> make_comparison_of(const Site& site) {
  const std::string_view op = site.node.op;
  if (op == "equal") return compared<T>(site, [](T a, T b) { return a == b; });
  if (op == "less") return compared<T>(site, [](T a, T b) { return a < b; });
  if (op == "less_equal") return compared<T>(site, [](T a, T b) { return a <= b; });
  if (op == "greater") return compared<T>(site, [](T a, T b) { return a > b; });
  if (op == "greater_equal") return compared<T>(site, [](T a, T b) { return a >= b; });
  return nullptr;
}

template <typename Unit>
PLIMSOLL_VECTORIZED void choose_row(const TruthByte* c, std::int64_t step_c, const Unit* a,
                                    std::int64_t step_a, const Unit* b, std::int64_t step_b,
                                    Unit* y, std::int64_t n) {
  if (step_c == 1 && step_a == 1 && step_b == 1) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) y[i] = c[i] != 0 ? a[i] : b[i];
    return;
  }
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) y[i] = c[i * step_c] != 0 ? a[i * step_a] : b[i * step_b];
}

template <typename Unit>
std::unique_ptr<Kernel> make_where_of(const Site& site) {
  return make_kernel(site, [loop = broadcast_loop(site)](const Arguments& arguments) {
    for_each_row(loop, [&](std::int64_t r, std::int64_t first, std::int64_t n) {
      choose_row(input<TruthByte>(arguments, 0) + loop.place(1, r, first), loop.row_step(1),
                 input<Unit>(arguments, 1) + loop.place(2, r, first), loop.row_step(2),
                 input<Unit>(arguments, 2) + loop.place(3, r, first), loop.row_step(3),
                 output<Unit>(arguments) + loop.place(0, r, first), n);
    });
  });
}

template <typename T, typename F>
std::unique_ptr<Kernel> tested(const Site& site, F f) {
  const std::int64_t count = stored_elements(site.in(0));
  return make_kernel(site, [=](const Arguments& a) {
    parallel_ranges(count, kElementGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        output<TruthByte>(a)[i] = f(input<T>(a, 0)[i]) ? 1 : 0;
    });
  });
}

}  // namespace

std::unique_ptr<Kernel> make_comparison(const Site& site) {
  if (!all_unblocked(site) || site.out().shape.elements() == 0) return nullptr;
  switch (site.in(0).dtype) {
    case ir::DType::kF32:
      return make_comparison_of<float>(site);
    case ir::DType::kI64:
      return make_comparison_of<std::int64_t>(site);
    case ir::DType::kI32:
      return make_comparison_of<std::int32_t>(site);
    case ir::DType::kBool:
      return make_comparison_of<TruthByte>(site);
    default:
      return nullptr;
  }
}

std::unique_ptr<Kernel> make_logic(const Site& site) {
  if (!all_unblocked(site) || site.out().shape.elements() == 0) return nullptr;
  const std::string_view op = site.node.op;
  if (op == "logical_and")
    return compared<TruthByte>(site, [](TruthByte a, TruthByte b) { return (a & b) != 0; });
  if (op == "logical_or")
    return compared<TruthByte>(site, [](TruthByte a, TruthByte b) { return (a | b) != 0; });
  if (op == "logical_xor")
    return compared<TruthByte>(site, [](TruthByte a, TruthByte b) { return a != b; });
  if (op == "logical_not" && site.in(0) == site.out())
    return tested<TruthByte>(site, [](TruthByte x) { return x == 0; });
  return nullptr;
}

std::unique_ptr<Kernel> make_test(const Site& site) {
  if (!is_f32(site.in(0)) || site.in(0).layout != site.out().layout) return nullptr;
  if (site.node.op == "is_nan") return tested<float>(site, [](float x) { return std::isnan(x); });
  if (site.node.op == "is_inf") return tested<float>(site, [](float x) { return std::isinf(x); });
  return nullptr;
}

std::unique_ptr<Kernel> make_where(const Site& site) {
  if (!all_unblocked(site) || site.out().shape.elements() == 0) return nullptr;
  switch (ir::bits(site.out().dtype)) {
    case 8:
      return make_where_of<std::uint8_t>(site);
    case 16:
      return make_where_of<std::uint16_t>(site);
    case 32:
      return make_where_of<std::uint32_t>(site);
    case 64:
      return make_where_of<std::uint64_t>(site);
    default:
      return nullptr;
  }
}

}  // namespace plimsoll::kernels
