// The functions that formulas of one number are written in, for numbers: the reference evaluation
// uses them on doubles.
//
// A formula (activation_formulas.h) is a template over such a struct, so it is written once and
// serves wherever there is one:
//   ReferenceMath          the reference evaluation
//   VectorMath             kernels: floats, with exp, tanh, erf and sigmoid that vectorise
//                          (kernels/cpu/vectorize.h)
//   GraphMath              graphs: the gradient as nodes (activation_grad.cpp)
//   SourceMath             the text of CUDA kernels (kernels/cuda/source_math.h)
// `Number` is what attributes and constants are, which for graphs is not what elements are.
#pragma once

#include <algorithm>
#include <cmath>

#include "plimsoll/base/inline.h"

namespace plimsoll::ops {

template <typename T>
struct RealMath {
  using Number = T;

  static PLIMSOLL_INLINE T exp(T x) { return std::exp(x); }
  static PLIMSOLL_INLINE T expm1(T x) { return std::expm1(x); }
  static PLIMSOLL_INLINE T tanh(T x) { return std::tanh(x); }
  static PLIMSOLL_INLINE T erf_plus_one(T x) { return 1 + std::erf(x); }
  // Neither branch overflows.
  static PLIMSOLL_INLINE T sigmoid(T x) {
    return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
  }
  static PLIMSOLL_INLINE T softplus(T x) {
    return (x > 0 ? x : 0) + std::log1p(std::exp(-std::abs(x)));
  }
  static PLIMSOLL_INLINE T abs(T x) { return std::abs(x); }
  static PLIMSOLL_INLINE T sqrt(T x) { return std::sqrt(x); }
  static PLIMSOLL_INLINE T clamp(T x, T low, T high) { return std::clamp(x, low, high); }
  static PLIMSOLL_INLINE T at_most(T x, T most) { return x > most ? most : x; }

  static PLIMSOLL_INLINE bool less(T a, T b) { return a < b; }
  static PLIMSOLL_INLINE bool less_equal(T a, T b) { return a <= b; }
  static PLIMSOLL_INLINE bool greater(T a, T b) { return a > b; }
  static PLIMSOLL_INLINE bool greater_equal(T a, T b) { return a >= b; }
  static PLIMSOLL_INLINE bool both(bool a, bool b) { return a && b; }
  static PLIMSOLL_INLINE bool either(bool a, bool b) { return a || b; }
  static PLIMSOLL_INLINE T select(bool condition, T a, T b) { return condition ? a : b; }
  // Only the branch taken is computed.
  template <typename A, typename B>
  static PLIMSOLL_INLINE T choose(bool condition, const A& a, const B& b) {
    return condition ? a() : b();
  }
  // x, of which only negative values matter. A graph computes both branches of a select, so there
  // it is bounded: the branch that is not taken must not overflow.
  static PLIMSOLL_INLINE T where_negative(T x) { return x; }
};
using ReferenceMath = RealMath<double>;

}  // namespace plimsoll::ops
