#include "plimsoll/ops/elementwise/activation.h"

#include <cmath>
#include <limits>

#include "plimsoll/ops/definition/attribute_rules.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/presets.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/elementwise/unary_evaluation.h"

namespace plimsoll::ops {
namespace {

// The bounds of clip may be infinite, but no NaN; the parameters of all others are finite.
Result<std::vector<TensorType>> infer_activation(const Call& call) {
  for (const AttributeSpec& spec : call.attributes().specs()) {
    if (spec.type != AttributeType::kReal) continue;
    PLIMSOLL_RETURN_IF_ERROR(finite_attribute(call.attributes(), spec.name));
  }
  return same_as_first_float(call);
}

Result<std::vector<TensorType>> infer_celu(const Call& call) {
  if (call.attributes().real("alpha") == 0) return bad_input("alpha is 0, expects another number");
  return infer_activation(call);
}

Result<std::vector<TensorType>> infer_clip(const Call& call) {
  const Clip<ReferenceMath> bounds(call.attributes());
  if (std::isnan(bounds.low) || std::isnan(bounds.high)) return bad_input("a bound is NaN");
  if (call.type(0).dtype == ir::DType::kBool || call.type(0).dtype == ir::DType::kBit) {
    return bad_input("input is {}, expects numbers", ir::name(call.type(0).dtype));
  }
  return same_as_first(call);
}

void evaluate_clip(const Evaluation& e) {
  evaluate_value<Clip>(e);
  const Clip<ReferenceMath> bounds(e.attributes);
  const Array& x = e.in(0);
  for (std::size_t i = 0; i < x.integers.size(); ++i) {
    const auto value = static_cast<double>(x.integers[i]);
    // A number inside stays what it is: doubles do not hold every int64.
    const double clipped = bounds.value(value);
    e.out().integers[i] = clipped == value ? x.integers[i] : to_integer(clipped);
  }
}

std::vector<Var> relu_gradient(const Backward& g) {
  return {relu_grad(g.dy(), g.out(0))};
}

// dx = <op>_grad(dy, x) with the attributes of the forward.
std::vector<Var> fused_gradient(const Backward& g) {
  return {g.builder.call1(fmt::format("{}_grad", g.attributes.op()), {g.dy(), g.in(0)},
                          g.attributes.given())};
}

// Transcendental functions count as one operation here, as everywhere: they are bound by memory.
OpDefinition activation_definition(std::string_view name, InferRule infer, GradientRule gradient,
                                   EvaluateRule evaluate) {
  return elementwise_definition(name, 1, infer, Gradient(gradient), InPlace::over(0), evaluate);
}

template <template <typename> class Formula>
OpDefinition activation(std::string_view name, InferRule infer = infer_activation) {
  return activation_definition(name, infer, fused_gradient, evaluate_value<Formula>);
}

Var call(std::string_view op, Var x, ir::Attributes attributes = {}) {
  return x.builder().call1(op, {x}, std::move(attributes));
}

}  // namespace

Var leaky_relu(Var x, double alpha) {
  return call("leaky_relu", x, {{"alpha", alpha}});
}
Var elu(Var x, double alpha) {
  return call("elu", x, {{"alpha", alpha}});
}
Var selu(Var x, double alpha, double gamma) {
  return call("selu", x, {{"alpha", alpha}, {"gamma", gamma}});
}
Var celu(Var x, double alpha) {
  return call("celu", x, {{"alpha", alpha}});
}
Var hard_sigmoid(Var x, double alpha, double beta) {
  return call("hard_sigmoid", x, {{"alpha", alpha}, {"beta", beta}});
}
Var thresholded_relu(Var x, double alpha) {
  return call("thresholded_relu", x, {{"alpha", alpha}});
}
Var shrink(Var x, double lambd, double bias) {
  return call("shrink", x, {{"lambd", lambd}, {"bias", bias}});
}
Var gelu(Var x, GeluForm form) {
  return call("gelu", x, {{"approximate", std::string(form == GeluForm::kTanh ? "tanh" : "none")}});
}
Var clip(Var x, std::optional<double> min, std::optional<double> max) {
  ir::Attributes attributes;
  if (min) attributes.set("min", *min);
  if (max) attributes.set("max", *max);
  return call("clip", x, std::move(attributes));
}

std::vector<OpDefinition> activation_definitions() {
  return {
      activation_definition("relu", same_as_first_float, relu_gradient, evaluate_value<Relu>),
      activation<LeakyRelu>("leaky_relu").having({attribute::real("alpha", 0.01)}),
      activation<Elu>("elu").having({attribute::real("alpha", 1)}),
      activation<Selu>("selu").having(
          {attribute::real("alpha", kSeluAlpha), attribute::real("gamma", kSeluGamma)}),
      activation<Celu>("celu", infer_celu).having({attribute::real("alpha", 1)}),
      activation<HardSigmoid>("hard_sigmoid")
          .having({attribute::real("alpha", 0.2), attribute::real("beta", 0.5)}),
      activation<ThresholdedRelu>("thresholded_relu").having({attribute::real("alpha", 1)}),
      activation<Shrink>("shrink").having(
          {attribute::real("lambd", 0.5), attribute::real("bias", 0)}),
      activation<Gelu>("gelu").having({attribute::choice("approximate", {"none", "tanh"})}),
      activation<Silu>("silu"),
      activation<Mish>("mish"),
      activation<HardSwish>("hard_swish"),
      activation_definition("clip", infer_clip, fused_gradient, evaluate_clip)
          .having({attribute::real("min", -std::numeric_limits<double>::infinity()),
                   attribute::real("max", std::numeric_limits<double>::infinity())}),
  };
}

}  // namespace plimsoll::ops
