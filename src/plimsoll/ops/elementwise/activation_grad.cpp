#include <algorithm>

#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/presets.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/elementwise/activation.h"
#include "plimsoll/ops/elementwise/activation_formulas.h"
#include "plimsoll/ops/elementwise/binary.h"
#include "plimsoll/ops/elementwise/comparison.h"
#include "plimsoll/ops/elementwise/unary.h"

namespace plimsoll::ops {
namespace {

Result<std::vector<TensorType>> infer_grad(const Call& call) {
  if (call.type(0).dtype != call.type(1).dtype || call.shape(0) != call.shape(1)) {
    return bad_input("the adjoint is {}, the other input {}: expects one type",
                     ir::to_string(call.type(0)), ir::to_string(call.type(1)));
  }
  return same_as_first_float(call);
}

// dx from dy and from x or y.
template <template <typename> class Formula>
void evaluate_gradient(const Evaluation& e) {
  const auto formula = formula_for<Formula<ReferenceMath>>(e.attributes);
  for (std::size_t i = 0; i < e.out().reals.size(); ++i) {
    e.out().reals[i] = formula.gradient(e.in(0).reals[i], e.in(1).reals[i]);
  }
}

// What formulas are written in, as nodes of a graph.
struct GraphMath {
  using Number = double;

  static Var exp(Var x) { return ops::exp(x); }
  static Var tanh(Var x) { return ops::tanh(x); }
  static Var erf_plus_one(Var x) { return 1 + ops::erf(x); }
  static Var sigmoid(Var x) { return ops::sigmoid(x); }
  static Var softplus(Var x) { return ops::softplus(x); }
  static Var at_most(Var x, double most) { return minimum(x, number(x, most)); }
  static Var where_negative(Var x) { return minimum(x, number(x, 0)); }

  static Var less(Var a, double b) { return ops::less(a, number(a, b)); }
  static Var less_equal(Var a, double b) { return ops::less_equal(a, number(a, b)); }
  static Var greater(Var a, double b) { return ops::greater(a, number(a, b)); }
  static Var greater_equal(Var a, double b) { return ops::greater_equal(a, number(a, b)); }
  static Var both(Var a, Var b) { return logical_and(a, b); }
  static Var either(Var a, Var b) { return logical_or(a, b); }
  static Var select(Var condition, Var a, Var b) { return where(condition, a, b); }
  static Var select(Var condition, Var a, double b) { return where(condition, a, number(a, b)); }
  static Var select(Var condition, double a, Var b) { return where(condition, number(b, a), b); }
};

template <template <typename> class Formula>
std::vector<Var> decompose_gradient(const Decomposition& d) {
  return {formula_for<Formula<GraphMath>>(d.attributes).gradient(d.in(0), d.in(1))};
}

template <template <typename> class Formula>
OpDefinition grad_definition(std::string_view name) {
  OpDefinition out =
      elementwise_definition(name, 2, infer_grad, Gradient::of_decomposition(),
                             InPlace::over_any_of({{0, 0}, {0, 1}}), evaluate_gradient<Formula>);
  out.decompose = decompose_gradient<Formula>;
  return out;
}

}  // namespace

std::vector<OpDefinition> activation_grad_definitions() {
  std::vector<OpDefinition> out{
      grad_definition<Relu>("relu_grad"),
      grad_definition<Sigmoid>("sigmoid_grad"),
      grad_definition<Tanh>("tanh_grad"),
      grad_definition<LeakyRelu>("leaky_relu_grad"),
      grad_definition<Elu>("elu_grad"),
      grad_definition<Selu>("selu_grad"),
      grad_definition<Celu>("celu_grad"),
      grad_definition<HardSigmoid>("hard_sigmoid_grad"),
      grad_definition<ThresholdedRelu>("thresholded_relu_grad"),
      grad_definition<Shrink>("shrink_grad"),
      grad_definition<Gelu>("gelu_grad"),
      grad_definition<Silu>("silu_grad"),
      grad_definition<Mish>("mish_grad"),
      grad_definition<HardSwish>("hard_swish_grad"),
      grad_definition<Clip>("clip_grad"),
  };
  // Each is called with the attributes of its forward operator.
  for (const OpDefinition& forward : activation_definitions()) {
    const auto grad =
        std::ranges::find(out, fmt::format("{}_grad", forward.name), &OpDefinition::name);
    grad->attributes = forward.attributes;
  }
  return out;
}

}  // namespace plimsoll::ops
