// Functions of one tensor and their gradients.
#include <cmath>

#include "plimsoll/kernels/cpu/elementwise.h"
#include "plimsoll/kernels/cpu/factories.h"

namespace plimsoll::kernels {
namespace {

constexpr float kSqrtHalf = 0.707106781F;
constexpr float kSqrt2OverPi = 0.797884561F;
constexpr float kInverseSqrt2Pi = 0.398942280F;
constexpr float kCubic = 0.044715F;

PLIMSOLL_INLINE float gelu_exact(float x) {
  return 0.5F * x * (1.0F + vector_erf(x * kSqrtHalf));
}
PLIMSOLL_INLINE float gelu_tanh(float x) {
  return 0.5F * x * (1.0F + vector_tanh(kSqrt2OverPi * (x + kCubic * x * x * x)));
}
PLIMSOLL_INLINE float gelu_exact_slope(float x) {
  return 0.5F * (1.0F + vector_erf(x * kSqrtHalf)) +
         x * kInverseSqrt2Pi * vector_exp(-0.5F * x * x);
}
PLIMSOLL_INLINE float gelu_tanh_slope(float x) {
  const float t = vector_tanh(kSqrt2OverPi * (x + kCubic * x * x * x));
  // 1 - t^2 is 0 long before: not 0 times infinity
  const float square = x * x > 1e4F ? 1e4F : x * x;
  return 0.5F * (1.0F + t) +
         0.5F * x * (1.0F - t * t) * kSqrt2OverPi * (1.0F + 3.0F * kCubic * square);
}

bool is_tanh_form(const Site& site) {
  return site.attributes().text("approximate", "none") == "tanh";
}

std::unique_ptr<Kernel> make_clip(const Site& site) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto least = static_cast<float>(site.attributes().real("min", -infinity));
  const auto most = static_cast<float>(site.attributes().real("max", infinity));
  // As ONNX: a maximum below the minimum wins, and NaN stays.
  return mapped(site, [=](float x) {
    const float raised = x < least ? least : x;
    return raised > most ? most : raised;
  });
}

std::unique_ptr<Kernel> make_clip_grad(const Site& site) {
  const float infinity = std::numeric_limits<float>::infinity();
  const auto least = static_cast<float>(site.attributes().real("min", -infinity));
  const auto most = static_cast<float>(site.attributes().real("max", infinity));
  return mapped_pair(site, [=](float dy, float x) { return x >= least && x <= most ? dy : 0.0F; });
}

}  // namespace

std::unique_ptr<Kernel> make_unary(const Site& site) {
  const std::string_view op = site.node.op;
  if (op == "relu") return mapped(site, [](float x) { return x < 0.0F ? 0.0F : x; });
  if (op == "gelu") {
    return is_tanh_form(site) ? mapped(site, [](float x) { return gelu_tanh(x); })
                              : mapped(site, [](float x) { return gelu_exact(x); });
  }
  if (op == "tanh") return mapped(site, [](float x) { return vector_tanh(x); });
  if (op == "sigmoid") return mapped(site, [](float x) { return vector_sigmoid(x); });
  if (op == "silu") return mapped(site, [](float x) { return x * vector_sigmoid(x); });
  if (op == "exp") return mapped(site, [](float x) { return vector_exp(x); });
  if (op == "erf") return mapped(site, [](float x) { return vector_erf(x); });
  if (op == "neg") return mapped(site, [](float x) { return -x; });
  if (op == "abs") return mapped(site, [](float x) { return std::abs(x); });
  if (op == "sqrt") return mapped(site, [](float x) { return std::sqrt(x); });
  if (op == "rsqrt") return mapped(site, [](float x) { return 1.0F / std::sqrt(x); });
  if (op == "reciprocal") return mapped(site, [](float x) { return 1.0F / x; });
  if (op == "log") return mapped(site, [](float x) { return std::log(x); });
  if (op == "sin") return mapped(site, [](float x) { return std::sin(x); });
  if (op == "cos") return mapped(site, [](float x) { return std::cos(x); });
  if (op == "clip") return make_clip(site);
  if (op == "leaky_relu") {
    const auto alpha = static_cast<float>(site.attributes().real("alpha", 0.01));
    return mapped(site, [=](float x) { return x < 0.0F ? alpha * x : x; });
  }
  return nullptr;
}

// dy with y or x, as the operator's gradient reads.
std::unique_ptr<Kernel> make_gradient_unary(const Site& site) {
  const std::string_view op = site.node.op;
  if (op == "relu_grad")
    return mapped_pair(site, [](float dy, float y) { return y > 0.0F ? dy : 0.0F; });
  if (op == "sigmoid_grad")
    return mapped_pair(site, [](float dy, float y) { return dy * (y * (1.0F - y)); });
  if (op == "tanh_grad")
    return mapped_pair(site, [](float dy, float y) { return dy * (1.0F - y * y); });
  if (op == "gelu_grad") {
    return is_tanh_form(site)
               ? mapped_pair(site, [](float dy, float x) { return dy * gelu_tanh_slope(x); })
               : mapped_pair(site, [](float dy, float x) { return dy * gelu_exact_slope(x); });
  }
  if (op == "clip_grad") return make_clip_grad(site);
  if (op == "leaky_relu_grad") {
    const auto alpha = static_cast<float>(site.attributes().real("alpha", 0.01));
    return mapped_pair(site, [=](float dy, float x) { return x < 0.0F ? alpha * dy : dy; });
  }
  if (op == "silu_grad") {
    return mapped_pair(site, [](float dy, float x) {
      const float s = vector_sigmoid(x);
      return dy * s * (1.0F + x * (1.0F - s));
    });
  }
  return nullptr;
}

}  // namespace plimsoll::kernels
