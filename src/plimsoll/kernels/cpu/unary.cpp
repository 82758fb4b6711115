// Functions of one tensor and their gradients: the formulas of
// ops/elementwise/activation_formulas.h over vectors of floats. Where a formula needs expm1 or
// log1p it calls the C library: near zero a vectorised e^x - 1 would keep no digits.
#include <cmath>

#include "plimsoll/kernels/cpu/elementwise.h"
#include "plimsoll/kernels/cpu/table.h"
#include "plimsoll/ops/elementwise/activation_formulas.h"

namespace plimsoll::kernels {
namespace {

struct VectorMath : ops::RealMath<float> {
  static PLIMSOLL_INLINE float exp(float x) { return vector_exp(x); }
  static PLIMSOLL_INLINE float tanh(float x) { return vector_tanh(x); }
  static PLIMSOLL_INLINE float erf_plus_one(float x) { return 1 + vector_erf(x); }
  static PLIMSOLL_INLINE float sigmoid(float x) { return vector_sigmoid(x); }
};

// y = function(x)
template <float (*function)(float)>
std::unique_ptr<Kernel> make_function(const Site& site) {
  return mapped(site, [](float x) { return function(x); });
}

// y = the formula's value at x
template <template <typename> class Formula>
std::unique_ptr<Kernel> make_value(const Site& site) {
  return mapped(site, [f = ops::formula_for<Formula<VectorMath>>(site.attributes())](float x) {
    return f.value(x);
  });
}

// dx from dy and from x or y, as the operator's gradient reads
template <template <typename> class Formula>
std::unique_ptr<Kernel> make_gradient(const Site& site) {
  return mapped_pair(site, [f = ops::formula_for<Formula<VectorMath>>(site.attributes())](
                               float dy, float x) { return f.gradient(dy, x); });
}

std::unique_ptr<Kernel> make_gelu(const Site& site) {
  const bool tanh_form = ops::is_tanh_form(site.attributes());
  return tanh_form ? make_value<ops::GeluTanh>(site) : make_value<ops::GeluExact>(site);
}

std::unique_ptr<Kernel> make_gelu_grad(const Site& site) {
  const bool tanh_form = ops::is_tanh_form(site.attributes());
  return tanh_form ? make_gradient<ops::GeluTanh>(site) : make_gradient<ops::GeluExact>(site);
}

PLIMSOLL_INLINE float negative(float x) {
  return -x;
}

}  // namespace

std::span<const TableEntry> unary_kernels() {
  static constexpr TableEntry kRows[] = {
      {"abs", make_function<std::abs>},
      {"acos", make_function<std::acos>},
      {"acosh", make_function<std::acosh>},
      {"asin", make_function<std::asin>},
      {"asinh", make_function<std::asinh>},
      {"atan", make_function<std::atan>},
      {"atanh", make_function<std::atanh>},
      {"ceil", make_function<std::ceil>},
      {"celu", make_value<ops::Celu>},
      {"celu_grad", make_gradient<ops::Celu>},
      {"clip", make_value<ops::Clip>},
      {"clip_grad", make_gradient<ops::Clip>},
      {"cos", make_function<std::cos>},
      {"cosh", make_function<std::cosh>},
      {"elu", make_value<ops::Elu>},
      {"elu_grad", make_gradient<ops::Elu>},
      {"erf", make_function<vector_erf>},
      {"exp", make_function<vector_exp>},
      {"floor", make_function<std::floor>},
      {"gelu", make_gelu},
      {"gelu_grad", make_gelu_grad},
      {"hard_sigmoid", make_value<ops::HardSigmoid>},
      {"hard_sigmoid_grad", make_gradient<ops::HardSigmoid>},
      {"hard_swish", make_value<ops::HardSwish>},
      {"hard_swish_grad", make_gradient<ops::HardSwish>},
      {"leaky_relu", make_value<ops::LeakyRelu>},
      {"leaky_relu_grad", make_gradient<ops::LeakyRelu>},
      {"log", make_function<std::log>},
      {"mish", make_value<ops::Mish>},
      {"mish_grad", make_gradient<ops::Mish>},
      {"neg", make_function<negative>},
      {"reciprocal", make_value<ops::Reciprocal>},
      {"relu", make_value<ops::Relu>},
      {"relu_grad", make_gradient<ops::Relu>},
      {"round", make_function<std::nearbyint>},
      {"rsqrt", make_value<ops::Rsqrt>},
      {"selu", make_value<ops::Selu>},
      {"selu_grad", make_gradient<ops::Selu>},
      {"shrink", make_value<ops::Shrink>},
      {"shrink_grad", make_gradient<ops::Shrink>},
      {"sigmoid", make_value<ops::Sigmoid>},
      {"sigmoid_grad", make_gradient<ops::Sigmoid>},
      {"sign", make_value<ops::Sign>},
      {"silu", make_value<ops::Silu>},
      {"silu_grad", make_gradient<ops::Silu>},
      {"sin", make_function<std::sin>},
      {"sinh", make_function<std::sinh>},
      {"softplus", make_value<ops::Softplus>},
      {"softsign", make_value<ops::Softsign>},
      {"sqrt", make_function<std::sqrt>},
      {"tan", make_function<std::tan>},
      {"tanh", make_value<ops::Tanh>},
      {"tanh_grad", make_gradient<ops::Tanh>},
      {"thresholded_relu", make_value<ops::ThresholdedRelu>},
      {"thresholded_relu_grad", make_gradient<ops::ThresholdedRelu>},
  };
  return kRows;
}

}  // namespace plimsoll::kernels
