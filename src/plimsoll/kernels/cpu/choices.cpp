// Comparisons, logic, tests and `where`: everything that makes or reads a bool (one byte, 0 or 1).
//
// Operands broadcast; a row of the loop runs with one step per operand, so the inner loops are
// plain and the compiler vectorises those with steps of 1 and 0.
#include <cmath>
#include <functional>

#include "plimsoll/kernels/cpu/elementwise.h"
#include "plimsoll/kernels/cpu/strided.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/ops/elementwise/binary_formulas.h"

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

template <typename Relation>
std::unique_ptr<Kernel> make_comparison(const Site& site) {
  if (!all_unblocked(site) || site.out().shape.elements() == 0) return nullptr;
  switch (site.in(0).dtype) {
    case ir::DType::kF32:
      return compared<float>(site, Relation());
    case ir::DType::kI64:
      return compared<std::int64_t>(site, Relation());
    case ir::DType::kI32:
      return compared<std::int32_t>(site, Relation());
    case ir::DType::kBool:
      return compared<TruthByte>(site, Relation());
    default:
      return nullptr;
  }
}

template <typename Logic>
std::unique_ptr<Kernel> make_logic(const Site& site) {
  if (!all_unblocked(site) || site.out().shape.elements() == 0) return nullptr;
  return compared<TruthByte>(site, Logic());
}

std::unique_ptr<Kernel> make_not(const Site& site) {
  if (!all_unblocked(site) || site.out().shape.elements() == 0 || site.in(0) != site.out())
    return nullptr;
  return tested<TruthByte>(site, [](TruthByte x) { return x == 0; });
}

template <bool (*test)(float)>
std::unique_ptr<Kernel> make_test(const Site& site) {
  if (!is_f32(site.in(0)) || site.in(0).layout != site.out().layout) return nullptr;
  return tested<float>(site, [](float x) { return test(x); });
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

}  // namespace

std::span<const TableEntry> choice_kernels() {
  static constexpr TableEntry kRows[] = {
      {"equal", make_comparison<std::equal_to<>>},
      {"greater", make_comparison<std::greater<>>},
      {"greater_equal", make_comparison<std::greater_equal<>>},
      {"is_inf", make_test<std::isinf>},
      {"is_nan", make_test<std::isnan>},
      {"less", make_comparison<std::less<>>},
      {"less_equal", make_comparison<std::less_equal<>>},
      {"logical_and", make_logic<ops::LogicalAnd>},
      {"logical_not", make_not},
      {"logical_or", make_logic<ops::LogicalOr>},
      {"logical_xor", make_logic<ops::LogicalXor>},
      {"where", make_where},
  };
  return kRows;
}

}  // namespace plimsoll::kernels
