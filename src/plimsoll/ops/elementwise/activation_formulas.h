// The formulas of the activations, once for the forward definitions and once for their gradients:
// value and derivative at a real number. The decompositions in activation_grad.cpp say the same in
// operators.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "plimsoll/ir/attributes.h"
#include "plimsoll/ops/elementwise/unary_evaluation.h"

namespace plimsoll::ops {

// sqrt(2/pi) and the cubic coefficient of GELU's tanh form.
inline constexpr double kGeluScale = 0.79788456080286535588;
inline constexpr double kGeluCubic = 0.044715;

inline constexpr double kSeluAlpha = 1.67326319217681884765625;
inline constexpr double kSeluGamma = 1.05070102214813232421875;

// Each is made from the attributes and has value(x) and slope(x).
struct LeakyRelu {
  double alpha;
  explicit LeakyRelu(const ir::Attributes& a) : alpha(a.real("alpha", 0.01)) {}
  double value(double x) const { return x < 0 ? alpha * x : x; }
  double slope(double x) const { return x < 0 ? alpha : 1; }
};

struct Elu {
  double alpha;
  explicit Elu(const ir::Attributes& a) : alpha(a.real("alpha", 1)) {}
  double value(double x) const { return x < 0 ? alpha * std::expm1(x) : x; }
  double slope(double x) const { return x < 0 ? alpha * std::exp(x) : 1; }
};

struct Selu {
  double alpha;
  double gamma;
  explicit Selu(const ir::Attributes& a)
      : alpha(a.real("alpha", kSeluAlpha)), gamma(a.real("gamma", kSeluGamma)) {}
  double value(double x) const { return gamma * (x > 0 ? x : alpha * std::expm1(x)); }
  double slope(double x) const { return gamma * (x > 0 ? 1 : alpha * std::exp(x)); }
};

struct Celu {
  double alpha;
  explicit Celu(const ir::Attributes& a) : alpha(a.real("alpha", 1)) {}
  double value(double x) const { return x < 0 ? alpha * std::expm1(x / alpha) : x; }
  double slope(double x) const { return x < 0 ? std::exp(x / alpha) : 1; }
};

struct HardSigmoid {
  double alpha;
  double beta;
  explicit HardSigmoid(const ir::Attributes& a)
      : alpha(a.real("alpha", 0.2)), beta(a.real("beta", 0.5)) {}
  double value(double x) const { return std::clamp(alpha * x + beta, 0.0, 1.0); }
  double slope(double x) const {
    const double inner = alpha * x + beta;
    return inner > 0 && inner < 1 ? alpha : 0;
  }
};

struct ThresholdedRelu {
  double alpha;
  explicit ThresholdedRelu(const ir::Attributes& a) : alpha(a.real("alpha", 1)) {}
  double value(double x) const { return x > alpha ? x : 0; }
  double slope(double x) const { return x > alpha ? 1 : 0; }
};

struct Shrink {
  double lambd;
  double bias;
  explicit Shrink(const ir::Attributes& a) : lambd(a.real("lambd", 0.5)), bias(a.real("bias", 0)) {}
  double value(double x) const { return x < -lambd ? x + bias : x > lambd ? x - bias : 0; }
  double slope(double x) const { return x < -lambd || x > lambd ? 1 : 0; }
};

struct Gelu {
  bool tanh_form;
  explicit Gelu(const ir::Attributes& a) : tanh_form(a.text("approximate", "none") == "tanh") {}
  double value(double x) const {
    if (tanh_form) return 0.5 * x * (1 + std::tanh(kGeluScale * (x + kGeluCubic * x * x * x)));
    return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2));
  }
  double slope(double x) const {
    if (tanh_form) {
      const double t = std::tanh(kGeluScale * (x + kGeluCubic * x * x * x));
      const double inner = kGeluScale * (1 + 3 * kGeluCubic * x * x);
      return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner;
    }
    const double density = std::exp(-0.5 * x * x) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
    return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)) + x * density;
  }
};

struct Silu {
  explicit Silu(const ir::Attributes&) {}
  double value(double x) const { return x * sigmoid_of(x); }
  double slope(double x) const {
    const double s = sigmoid_of(x);
    return s * (1 + x * (1 - s));
  }
};

struct Mish {
  explicit Mish(const ir::Attributes&) {}
  double value(double x) const { return x * std::tanh(softplus_of(x)); }
  double slope(double x) const {
    const double t = std::tanh(softplus_of(x));
    return t + x * sigmoid_of(x) * (1 - t * t);
  }
};

struct HardSwish {
  explicit HardSwish(const ir::Attributes&) {}
  double value(double x) const { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }
  double slope(double x) const { return x <= -3 ? 0 : x >= 3 ? 1 : (2 * x + 3) / 6; }
};

// As ONNX: a maximum below the minimum wins.
struct Clip {
  double low;
  double high;
  explicit Clip(const ir::Attributes& a)
      : low(a.real("min", -std::numeric_limits<double>::infinity())),
        high(a.real("max", std::numeric_limits<double>::infinity())) {}
  double value(double x) const { return x < low ? std::min(low, high) : x > high ? high : x; }
  double slope(double x) const { return x >= low && x <= high ? 1 : 0; }
};

}  // namespace plimsoll::ops
