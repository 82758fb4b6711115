// Functions of one tensor and their gradients: the formulas of
// ops/elementwise/activation_formulas.h as CUDA text, and functions that CUDA has itself.
#include "plimsoll/kernels/cuda/pointwise.h"
#include "plimsoll/kernels/cuda/source_math.h"
#include "plimsoll/kernels/cuda/table.h"
#include "plimsoll/ops/elementwise/activation_formulas.h"

namespace plimsoll::kernels::cuda {
namespace {

bool has_16_bits(const ir::TensorType& type) {
  return type.dtype == ir::DType::kBF16 || type.dtype == ir::DType::kF16;
}

// What is rounded to 16 bits needs no more digits of the functions that take longest.
std::string with_short_functions(std::string statements) {
  for (const auto& [exact, brief] :
       {std::pair{"real_erfc(", "short_erfc("}, std::pair{"real_exp(", "short_exp("}}) {
    for (std::size_t at = statements.find(exact); at != std::string::npos;
         at = statements.find(exact, at))
      statements.replace(at, std::string_view(exact).size(), brief);
  }
  return statements;
}

Made make_written(const Site& site, const SourceWriter& writer, const Term& result) {
  if (!all_unblocked(site)) return no_kernel();
  Pointwise pointwise = pointwise_of(site);
  pointwise.statements = site.every_type(has_16_bits) ? with_short_functions(writer.statements())
                                                      : writer.statements();
  pointwise.results = {result.text};
  return make_pointwise(site, pointwise);
}

// y = the formula's value at x
template <template <typename> class Formula>
Made make_value(const Site& site) {
  SourceWriter writer;
  const auto formula = ops::formula_for<Formula<SourceMath>>(site.attributes());
  const Term result = formula.value(writer.input("a"));
  return make_written(site, writer, result);
}

// dx from dy and from x or y, as the operator's gradient reads
template <template <typename> class Formula>
Made make_gradient(const Site& site) {
  SourceWriter writer;
  const auto formula = ops::formula_for<Formula<SourceMath>>(site.attributes());
  const Term result = formula.gradient(writer.input("a"), writer.input("b"));
  return make_written(site, writer, result);
}

Made make_gelu(const Site& site) {
  const bool tanh_form = ops::is_tanh_form(site.attributes());
  return tanh_form ? make_value<ops::GeluTanh>(site) : make_value<ops::GeluExact>(site);
}

Made make_gelu_grad(const Site& site) {
  const bool tanh_form = ops::is_tanh_form(site.attributes());
  return tanh_form ? make_gradient<ops::GeluTanh>(site) : make_gradient<ops::GeluExact>(site);
}

}  // namespace

std::span<const TableEntry> activation_kernels() {
  static constexpr TableEntry kRows[] = {
      {"abs", make_expression<"magnitude(a)">},
      {"acos", make_expression<"real_acos(a)">},
      {"acosh", make_expression<"real_acosh(a)">},
      {"asin", make_expression<"real_asin(a)">},
      {"asinh", make_expression<"real_asinh(a)">},
      {"atan", make_expression<"real_atan(a)">},
      {"atanh", make_expression<"real_atanh(a)">},
      {"ceil", make_expression<"real_ceil(a)">},
      {"celu", make_value<ops::Celu>},
      {"celu_grad", make_gradient<ops::Celu>},
      {"clip", make_value<ops::Clip>},
      {"clip_grad", make_gradient<ops::Clip>},
      {"cos", make_expression<"real_cos(a)">},
      {"cosh", make_expression<"real_cosh(a)">},
      {"elu", make_value<ops::Elu>},
      {"elu_grad", make_gradient<ops::Elu>},
      {"erf", make_expression<"real_erf(a)">},
      {"exp", make_expression<"real_exp(a)">},
      {"floor", make_expression<"real_floor(a)">},
      {"gelu", make_gelu},
      {"gelu_grad", make_gelu_grad},
      {"hard_sigmoid", make_value<ops::HardSigmoid>},
      {"hard_sigmoid_grad", make_gradient<ops::HardSigmoid>},
      {"hard_swish", make_value<ops::HardSwish>},
      {"hard_swish_grad", make_gradient<ops::HardSwish>},
      {"leaky_relu", make_value<ops::LeakyRelu>},
      {"leaky_relu_grad", make_gradient<ops::LeakyRelu>},
      {"log", make_expression<"real_log(a)">},
      {"mish", make_value<ops::Mish>},
      {"mish_grad", make_gradient<ops::Mish>},
      {"neg", make_expression<"-a">},
      {"reciprocal", make_value<ops::Reciprocal>},
      {"relu", make_value<ops::Relu>},
      {"relu_grad", make_gradient<ops::Relu>},
      {"round", make_expression<"real_nearbyint(a)">},
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
      {"sin", make_expression<"real_sin(a)">},
      {"sinh", make_expression<"real_sinh(a)">},
      {"softplus", make_value<ops::Softplus>},
      {"softsign", make_value<ops::Softsign>},
      {"sqrt", make_expression<"real_sqrt(a)">},
      {"tan", make_expression<"real_tan(a)">},
      {"tanh", make_value<ops::Tanh>},
      {"tanh_grad", make_gradient<ops::Tanh>},
      {"thresholded_relu", make_value<ops::ThresholdedRelu>},
      {"thresholded_relu_grad", make_gradient<ops::ThresholdedRelu>},
  };
  return kRows;
}

}  // namespace plimsoll::kernels::cuda
