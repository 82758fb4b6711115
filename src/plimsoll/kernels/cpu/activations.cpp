// Activations and rounding functions beyond the everyday ones of unary.cpp, and their gradients.
//
// The same formulas as ops/elementwise/activation_formulas.h, in float. Where a formula needs expm1
// or log1p it calls the C library: near zero a vectorised e^x - 1 would keep no digits.
#include <cmath>

#include "plimsoll/kernels/cpu/elementwise.h"
#include "plimsoll/kernels/cpu/factories.h"
#include "plimsoll/ops/elementwise/activation_formulas.h"

namespace plimsoll::kernels {
namespace {

PLIMSOLL_INLINE float softplus(float x) {
  return (x > 0.0F ? x : 0.0F) + std::log1p(std::exp(-std::abs(x)));
}

float number(const Site& site, std::string_view name, double otherwise) {
  return static_cast<float>(site.attributes().real(name, otherwise));
}

std::unique_ptr<Kernel> make_bent(const Site& site) {
  const std::string_view op = site.node.op;
  if (op == "elu") {
    const float alpha = number(site, "alpha", 1);
    return mapped(site, [=](float x) { return x < 0.0F ? alpha * std::expm1(x) : x; });
  }
  if (op == "selu") {
    const float alpha = number(site, "alpha", ops::kSeluAlpha);
    const float gamma = number(site, "gamma", ops::kSeluGamma);
    return mapped(site, [=](float x) { return gamma * (x > 0.0F ? x : alpha * std::expm1(x)); });
  }
  if (op == "celu") {
    const float alpha = number(site, "alpha", 1);
    return mapped(site, [=](float x) { return x < 0.0F ? alpha * std::expm1(x / alpha) : x; });
  }
  if (op == "softplus") return mapped(site, [](float x) { return softplus(x); });
  if (op == "softsign") return mapped(site, [](float x) { return x / (1.0F + std::abs(x)); });
  if (op == "mish") return mapped(site, [](float x) { return x * vector_tanh(softplus(x)); });
  return nullptr;
}

std::unique_ptr<Kernel> make_piecewise(const Site& site) {
  const std::string_view op = site.node.op;
  if (op == "hard_sigmoid") {
    const float alpha = number(site, "alpha", 0.2);
    const float beta = number(site, "beta", 0.5);
    return mapped(site, [=](float x) { return std::clamp(alpha * x + beta, 0.0F, 1.0F); });
  }
  if (op == "hard_swish") {
    return mapped(site,
                  [](float x) { return x * std::clamp(x * (1.0F / 6.0F) + 0.5F, 0.0F, 1.0F); });
  }
  if (op == "thresholded_relu") {
    const float alpha = number(site, "alpha", 1);
    return mapped(site, [=](float x) { return x > alpha ? x : 0.0F; });
  }
  if (op == "shrink") {
    const float lambd = number(site, "lambd", 0.5);
    const float bias = number(site, "bias", 0);
    return mapped(site,
                  [=](float x) { return x < -lambd ? x + bias : (x > lambd ? x - bias : 0.0F); });
  }
  if (op == "sign")
    return mapped(site, [](float x) { return x > 0.0F ? 1.0F : (x < 0.0F ? -1.0F : x); });
  if (op == "floor") return mapped(site, [](float x) { return std::floor(x); });
  if (op == "ceil") return mapped(site, [](float x) { return std::ceil(x); });
  if (op == "round") return mapped(site, [](float x) { return std::nearbyint(x); });
  return nullptr;
}

std::unique_ptr<Kernel> make_circular(const Site& site) {
  const std::string_view op = site.node.op;
  if (op == "tan") return mapped(site, [](float x) { return std::tan(x); });
  if (op == "asin") return mapped(site, [](float x) { return std::asin(x); });
  if (op == "acos") return mapped(site, [](float x) { return std::acos(x); });
  if (op == "atan") return mapped(site, [](float x) { return std::atan(x); });
  if (op == "sinh") return mapped(site, [](float x) { return std::sinh(x); });
  if (op == "cosh") return mapped(site, [](float x) { return std::cosh(x); });
  if (op == "asinh") return mapped(site, [](float x) { return std::asinh(x); });
  if (op == "acosh") return mapped(site, [](float x) { return std::acosh(x); });
  if (op == "atanh") return mapped(site, [](float x) { return std::atanh(x); });
  return nullptr;
}

}  // namespace

std::unique_ptr<Kernel> make_activation(const Site& site) {
  for (const auto make : {make_bent, make_piecewise, make_circular}) {
    if (auto kernel = make(site)) return kernel;
  }
  return nullptr;
}

// dy times the slope at x.
std::unique_ptr<Kernel> make_activation_grad(const Site& site) {
  const std::string_view op = site.node.op;
  if (op == "elu_grad") {
    const float alpha = number(site, "alpha", 1);
    return mapped_pair(
        site, [=](float dy, float x) { return x < 0.0F ? dy * (alpha * vector_exp(x)) : dy; });
  }
  if (op == "selu_grad") {
    const float gamma = number(site, "gamma", ops::kSeluGamma);
    const float below = gamma * number(site, "alpha", ops::kSeluAlpha);
    return mapped_pair(
        site, [=](float dy, float x) { return dy * (x > 0.0F ? gamma : below * vector_exp(x)); });
  }
  if (op == "celu_grad") {
    const float scale = 1.0F / number(site, "alpha", 1);
    return mapped_pair(
        site, [=](float dy, float x) { return x < 0.0F ? dy * vector_exp(x * scale) : dy; });
  }
  if (op == "mish_grad") {
    return mapped_pair(site, [](float dy, float x) {
      const float t = vector_tanh(softplus(x));
      return dy * (t + x * vector_sigmoid(x) * (1.0F - t * t));
    });
  }
  if (op == "hard_sigmoid_grad") {
    const float alpha = number(site, "alpha", 0.2);
    const float beta = number(site, "beta", 0.5);
    return mapped_pair(site, [=](float dy, float x) {
      const float inner = alpha * x + beta;
      return inner > 0.0F && inner < 1.0F ? dy * alpha : 0.0F;
    });
  }
  if (op == "hard_swish_grad") {
    return mapped_pair(site, [](float dy, float x) {
      const float slope = (2.0F * x + 3.0F) * (1.0F / 6.0F);
      return x <= -3.0F ? 0.0F : (x >= 3.0F ? dy : dy * slope);
    });
  }
  if (op == "thresholded_relu_grad") {
    const float alpha = number(site, "alpha", 1);
    return mapped_pair(site, [=](float dy, float x) { return x > alpha ? dy : 0.0F; });
  }
  if (op == "shrink_grad") {
    const float lambd = number(site, "lambd", 0.5);
    return mapped_pair(site,
                       [=](float dy, float x) { return x < -lambd || x > lambd ? dy : 0.0F; });
  }
  return nullptr;
}

}  // namespace plimsoll::kernels
