// The formulas of elementwise functions, each written once: value at x, and what flows back through
// it, as a template over the functions of the scalar (real_math.h lists who instantiates them).
//
// A formula is made from the operator's attributes. value(x) is for numbers and for the text of
// CUDA kernels, gradient(dy, x) also for graphs, hence Math::select instead of `?:` (Math::choose
// where the branch that is not taken is worth leaving out). A function in straight pieces passes on
// a choice and not a product, so that nothing flows through a flat piece, even from an infinite dy.
//
// The order of operations is part of a formula: kernels have always computed in this order, and
// their bits are pinned. So divisions by a constant are products with its inverse.
#pragma once

#include <limits>
#include <numbers>
#include <type_traits>

#include "plimsoll/ops/definition/attribute_spec.h"
#include "plimsoll/ops/elementwise/real_math.h"

namespace plimsoll::ops {

// The formula for a node's attributes, which not every formula has.
template <typename Formula>
Formula formula_for(const AttributeReader& attributes) {
  if constexpr (std::is_constructible_v<Formula, const AttributeReader&>) {
    return Formula(attributes);
  } else {
    return Formula{};
  }
}

template <typename Math>
struct Relu {
  PLIMSOLL_INLINE auto value(auto x) const { return Math::select(Math::less(x, 0), 0, x); }
  // From the result: nothing flows where it is zero.
  PLIMSOLL_INLINE auto gradient(auto dy, auto y) const {
    return Math::select(Math::greater(y, 0), dy, 0);
  }
};

template <typename Math>
struct Sigmoid {
  PLIMSOLL_INLINE auto value(auto x) const { return Math::sigmoid(x); }
  // From the result.
  PLIMSOLL_INLINE auto gradient(auto dy, auto y) const { return dy * (y * (1 - y)); }
};

template <typename Math>
struct Tanh {
  PLIMSOLL_INLINE auto value(auto x) const { return Math::tanh(x); }
  // From the result.
  PLIMSOLL_INLINE auto gradient(auto dy, auto y) const { return dy * (1 - y * y); }
};

template <typename Math>
struct LeakyRelu {
  typename Math::Number alpha;
  explicit LeakyRelu(const AttributeReader& a) : alpha(a.real("alpha")) {}
  PLIMSOLL_INLINE auto value(auto x) const { return Math::select(Math::less(x, 0), alpha * x, x); }
  PLIMSOLL_INLINE auto gradient(auto dy, auto x) const {
    return Math::select(Math::less(x, 0), dy * alpha, dy);
  }
};

template <typename Math>
struct Elu {
  typename Math::Number alpha;
  explicit Elu(const AttributeReader& a) : alpha(a.real("alpha")) {}
  PLIMSOLL_INLINE auto value(auto x) const {
    return Math::choose(
        Math::less(x, 0), [&] { return alpha * Math::expm1(x); }, [&] { return x; });
  }
  PLIMSOLL_INLINE auto gradient(auto dy, auto x) const {
    return Math::select(Math::less(x, 0), dy * (Math::exp(Math::where_negative(x)) * alpha), dy);
  }
};

template <typename Math>
struct Selu {
  typename Math::Number alpha;
  typename Math::Number gamma;
  explicit Selu(const AttributeReader& a) : alpha(a.real("alpha")), gamma(a.real("gamma")) {}
  PLIMSOLL_INLINE auto value(auto x) const {
    return gamma *
           Math::choose(
               Math::greater(x, 0), [&] { return x; }, [&] { return alpha * Math::expm1(x); });
  }
  PLIMSOLL_INLINE auto gradient(auto dy, auto x) const {
    const auto below = Math::exp(Math::where_negative(x)) * (gamma * alpha);
    return Math::select(Math::greater(x, 0), dy * gamma, dy * below);
  }
};

template <typename Math>
struct Celu {
  typename Math::Number alpha;
  explicit Celu(const AttributeReader& a) : alpha(a.real("alpha")) {}
  PLIMSOLL_INLINE auto value(auto x) const {
    return Math::choose(
        Math::less(x, 0), [&] { return alpha * Math::expm1(x / alpha); }, [&] { return x; });
  }
  PLIMSOLL_INLINE auto gradient(auto dy, auto x) const {
    const auto below = Math::exp(Math::where_negative(x) * (1 / alpha));
    return Math::select(Math::less(x, 0), dy * below, dy);
  }
};

template <typename Math>
struct HardSigmoid {
  typename Math::Number alpha;
  typename Math::Number beta;
  explicit HardSigmoid(const AttributeReader& a) : alpha(a.real("alpha")), beta(a.real("beta")) {}
  PLIMSOLL_INLINE auto value(auto x) const { return Math::clamp(x * alpha + beta, 0, 1); }
  PLIMSOLL_INLINE auto gradient(auto dy, auto x) const {
    const auto inner = x * alpha + beta;
    const auto inside = Math::both(Math::greater(inner, 0), Math::less(inner, 1));
    return Math::select(inside, dy * alpha, 0);
  }
};

template <typename Math>
struct ThresholdedRelu {
  typename Math::Number alpha;
  explicit ThresholdedRelu(const AttributeReader& a) : alpha(a.real("alpha")) {}
  PLIMSOLL_INLINE auto value(auto x) const { return Math::select(Math::greater(x, alpha), x, 0); }
  PLIMSOLL_INLINE auto gradient(auto dy, auto x) const {
    return Math::select(Math::greater(x, alpha), dy, 0);
  }
};

template <typename Math>
struct Shrink {
  typename Math::Number lambd;
  typename Math::Number bias;
  explicit Shrink(const AttributeReader& a) : lambd(a.real("lambd")), bias(a.real("bias")) {}
  PLIMSOLL_INLINE auto value(auto x) const {
    return Math::select(Math::less(x, -lambd), x + bias,
                        Math::select(Math::greater(x, lambd), x - bias, 0));
  }
  PLIMSOLL_INLINE auto gradient(auto dy, auto x) const {
    return Math::select(Math::either(Math::less(x, -lambd), Math::greater(x, lambd)), dy, 0);
  }
};

template <typename Math>
struct GeluExact {
  using Number = typename Math::Number;
  static constexpr Number kHalf = 0.5;
  static constexpr Number kSqrtHalf = 1 / std::numbers::sqrt2;
  static constexpr Number kDensity = std::numbers::inv_sqrtpi / std::numbers::sqrt2;
  PLIMSOLL_INLINE auto value(auto x) const { return kHalf * x * Math::erf_plus_one(x * kSqrtHalf); }
  PLIMSOLL_INLINE auto gradient(auto dy, auto x) const {
    return dy *
           (kHalf * Math::erf_plus_one(x * kSqrtHalf) + x * kDensity * Math::exp(-kHalf * x * x));
  }
};

template <typename Math>
struct GeluTanh {
  using Number = typename Math::Number;
  static constexpr Number kHalf = 0.5;
  static constexpr Number kScale = 0.79788456080286535588;  // sqrt(2 / pi)
  static constexpr Number kCubic = 0.044715;
  PLIMSOLL_INLINE auto inner(auto x) const { return Math::tanh(kScale * (x + kCubic * x * x * x)); }
  PLIMSOLL_INLINE auto value(auto x) const { return kHalf * x * (1 + inner(x)); }
  PLIMSOLL_INLINE auto gradient(auto dy, auto x) const {
    const auto t = inner(x);
    // 1 - t^2 is 0 long before: not 0 times infinity
    const auto square = Math::at_most(x * x, Number(1e4));
    return dy * (kHalf * (1 + t) + kHalf * x * (1 - t * t) * kScale * (1 + 3 * kCubic * square));
  }
};

// Kernels know which of the two it is before their loops.
inline bool is_tanh_form(const AttributeReader& attributes) {
  return attributes.text("approximate") == "tanh";
}

template <typename Math>
struct Gelu {
  bool tanh_form;
  explicit Gelu(const AttributeReader& a) : tanh_form(is_tanh_form(a)) {}
  auto value(auto x) const {
    return tanh_form ? GeluTanh<Math>().value(x) : GeluExact<Math>().value(x);
  }
  auto gradient(auto dy, auto x) const {
    return tanh_form ? GeluTanh<Math>().gradient(dy, x) : GeluExact<Math>().gradient(dy, x);
  }
};

template <typename Math>
struct Silu {
  PLIMSOLL_INLINE auto value(auto x) const { return x * Math::sigmoid(x); }
  PLIMSOLL_INLINE auto gradient(auto dy, auto x) const {
    const auto s = Math::sigmoid(x);
    return dy * s * (1 + x * (1 - s));
  }
};

template <typename Math>
struct Mish {
  PLIMSOLL_INLINE auto value(auto x) const { return x * Math::tanh(Math::softplus(x)); }
  PLIMSOLL_INLINE auto gradient(auto dy, auto x) const {
    const auto t = Math::tanh(Math::softplus(x));
    return dy * (t + x * Math::sigmoid(x) * (1 - t * t));
  }
};

template <typename Math>
struct HardSwish {
  static constexpr typename Math::Number kSixth = 1.0 / 6;
  static constexpr typename Math::Number kHalf = 0.5;
  PLIMSOLL_INLINE auto value(auto x) const { return x * Math::clamp(x * kSixth + kHalf, 0, 1); }
  PLIMSOLL_INLINE auto gradient(auto dy, auto x) const {
    const auto middle = dy * ((2 * x + 3) * kSixth);
    const auto upper = Math::select(Math::greater_equal(x, 3), dy, middle);
    return Math::select(Math::less_equal(x, -3), 0, upper);
  }
};

// As ONNX: a maximum below the minimum wins, and NaN stays.
template <typename Math>
struct Clip {
  typename Math::Number low;
  typename Math::Number high;
  explicit Clip(const AttributeReader& a) : low(a.real("min")), high(a.real("max")) {}
  PLIMSOLL_INLINE auto value(auto x) const {
    return Math::at_most(Math::select(Math::less(x, low), low, x), high);
  }
  PLIMSOLL_INLINE auto inside(auto x) const {
    return Math::both(Math::greater_equal(x, low), Math::less_equal(x, high));
  }
  PLIMSOLL_INLINE auto gradient(auto dy, auto x) const { return Math::select(inside(x), dy, 0); }
};

template <typename Math>
struct Sign {
  PLIMSOLL_INLINE auto value(auto x) const {
    return Math::select(Math::greater(x, 0), 1, Math::select(Math::less(x, 0), -1, x));
  }
};

template <typename Math>
struct Reciprocal {
  PLIMSOLL_INLINE auto value(auto x) const { return 1 / x; }
};

template <typename Math>
struct Rsqrt {
  PLIMSOLL_INLINE auto value(auto x) const { return 1 / Math::sqrt(x); }
};

template <typename Math>
struct Softplus {
  PLIMSOLL_INLINE auto value(auto x) const { return Math::softplus(x); }
};

template <typename Math>
struct Softsign {
  PLIMSOLL_INLINE auto value(auto x) const { return x / (1 + Math::abs(x)); }
};

}  // namespace plimsoll::ops
