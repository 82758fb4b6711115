// The loop behind every two-operand reference evaluation: broadcast, then one function for reals
// and one for integers, so that integers stay exact. And the definition that such operators share.
#pragma once

#include <cstdint>

#include "plimsoll/ops/definition/presets.h"
#include "plimsoll/ops/definition/rules.h"

namespace plimsoll::ops {

// Two's complement, as the kernels wrap.
inline std::int64_t wrapping(std::uint64_t value) {
  return static_cast<std::int64_t>(value);
}

// y = f(a, b); a and b have one dtype, which decides the function (y may be a bool).
template <typename Reals, typename Integers>
void evaluate_binary(const Evaluation& e, Reals on_reals, Integers on_integers) {
  const Array& a = e.in(0);
  const Array& b = e.in(1);
  Array& y = e.out();
  const auto store = [&](std::int64_t i, auto value) {
    const auto at = static_cast<std::size_t>(i);
    if (y.is_real()) {
      y.reals[at] = static_cast<double>(value);
    } else {
      y.integers[at] = static_cast<std::int64_t>(value);
    }
  };
  for_each_broadcast(y.type.shape, a.type.shape, b.type.shape,
                     [&](std::int64_t i, std::int64_t j, std::int64_t k) {
                       const auto at_a = static_cast<std::size_t>(j);
                       const auto at_b = static_cast<std::size_t>(k);
                       if (a.is_real()) {
                         store(i, on_reals(a.reals[at_a], b.reals[at_b]));
                       } else {
                         store(i, on_integers(a.integers[at_a], b.integers[at_b]));
                       }
                     });
}

// The same where the order of integers matters: uint64 is stored in an int64 and must be compared
// as what it is. `f` takes two doubles, two int64 or two uint64.
template <typename Function>
void evaluate_ordered(const Evaluation& e, Function f) {
  const bool is_unsigned = e.in(0).type.dtype == ir::DType::kU64;
  evaluate_binary(e, f, [&](std::int64_t a, std::int64_t b) -> std::int64_t {
    if (is_unsigned) {
      return static_cast<std::int64_t>(
          f(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
    }
    return static_cast<std::int64_t>(f(a, b));
  });
}

// The rules of operators that are one function object: one in which integers wrap, and one to which
// their order matters.
template <typename Function>
void evaluate_wrapping(const Evaluation& e) {
  evaluate_binary(e, Function(), [](std::int64_t a, std::int64_t b) {
    return wrapping(Function()(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
  });
}
template <typename Function>
void evaluate_by_order(const Evaluation& e) {
  evaluate_ordered(e, Function());
}

// The definition of a differentiable two-operand operator: broadcasts, and may lie over either
// operand.
inline OpDefinition binary_definition(std::string_view name, GradientRule gradient,
                                      EvaluateRule evaluate) {
  return elementwise_definition(name, 2, broadcast_all, Gradient(gradient),
                                InPlace::over_any_of({{0, 0}, {0, 1}}), evaluate);
}

}  // namespace plimsoll::ops
