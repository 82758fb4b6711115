#include <numbers>

#include "plimsoll/ops/definition/definitions.h"
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

// dx = dy * slope(x)
template <typename Slope>
void evaluate_product(const Evaluation& e, Slope slope) {
  for (std::size_t i = 0; i < e.out().reals.size(); ++i) {
    e.out().reals[i] = e.in(0).reals[i] * slope(e.in(1).reals[i]);
  }
}

template <typename Formula>
void evaluate_slope(const Evaluation& e) {
  const Formula formula(e.attributes);
  evaluate_product(e, [&](double x) { return formula.slope(x); });
}

// Of functions in straight pieces: a choice and not a product, so that nothing flows through a flat
// piece, even from an infinite dy.
template <typename Formula>
void evaluate_choice(const Evaluation& e) {
  const Formula formula(e.attributes);
  for (std::size_t i = 0; i < e.out().reals.size(); ++i) {
    const double slope = formula.slope(e.in(1).reals[i]);
    e.out().reals[i] = slope == 0 ? 0 : e.in(0).reals[i] * slope;
  }
}

void evaluate_hard_swish_grad(const Evaluation& e) {
  const HardSwish formula(e.attributes);
  for (std::size_t i = 0; i < e.out().reals.size(); ++i) {
    const double x = e.in(1).reals[i];
    e.out().reals[i] = x <= -3 ? 0 : e.in(0).reals[i] * formula.slope(x);
  }
}

// The same from the output: nothing flows where y is zero.
void evaluate_relu_grad(const Evaluation& e) {
  for (std::size_t i = 0; i < e.out().reals.size(); ++i) {
    e.out().reals[i] = e.in(1).reals[i] > 0 ? e.in(0).reals[i] : 0;
  }
}
void evaluate_sigmoid_grad(const Evaluation& e) {
  evaluate_product(e, [](double y) { return y * (1 - y); });
}
void evaluate_tanh_grad(const Evaluation& e) {
  evaluate_product(e, [](double y) { return 1 - y * y; });
}

using Parts = std::vector<Var>;

Var zero(Var like) {
  return number(like, 0);
}
// e^x where x is negative, 1 elsewhere: the branch that is not taken must not overflow.
Var exp_of_negative(Var x) {
  return exp(minimum(x, zero(x)));
}

Parts decompose_relu(const Decomposition& d) {
  return {where(greater(d.in(1), zero(d.in(1))), d.in(0), zero(d.in(0)))};
}
Parts decompose_sigmoid(const Decomposition& d) {
  const Var y = d.in(1);
  return {d.in(0) * (y * (1 - y))};
}
Parts decompose_tanh(const Decomposition& d) {
  return {d.in(0) * (1 - square(d.in(1)))};
}
Parts decompose_leaky_relu(const Decomposition& d) {
  const LeakyRelu f(d.attributes);
  return {where(less(d.in(1), zero(d.in(1))), d.in(0) * f.alpha, d.in(0))};
}
Parts decompose_elu(const Decomposition& d) {
  const Elu f(d.attributes);
  const Var x = d.in(1);
  return {where(less(x, zero(x)), d.in(0) * (exp_of_negative(x) * f.alpha), d.in(0))};
}
Parts decompose_selu(const Decomposition& d) {
  const Selu f(d.attributes);
  const Var x = d.in(1);
  const Var below = d.in(0) * (exp_of_negative(x) * (f.gamma * f.alpha));
  return {where(greater(x, zero(x)), d.in(0) * f.gamma, below)};
}
Parts decompose_celu(const Decomposition& d) {
  const Celu f(d.attributes);
  const Var x = d.in(1);
  const Var bent = exp(minimum(x, zero(x)) / f.alpha);
  return {where(less(x, zero(x)), d.in(0) * bent, d.in(0))};
}
Parts decompose_hard_sigmoid(const Decomposition& d) {
  const HardSigmoid f(d.attributes);
  const Var inner = d.in(1) * f.alpha + f.beta;
  const Var inside = logical_and(greater(inner, zero(inner)), less(inner, number(inner, 1)));
  return {where(inside, d.in(0) * f.alpha, zero(d.in(0)))};
}
Parts decompose_thresholded_relu(const Decomposition& d) {
  const ThresholdedRelu f(d.attributes);
  return {where(greater(d.in(1), number(d.in(1), f.alpha)), d.in(0), zero(d.in(0)))};
}
Parts decompose_shrink(const Decomposition& d) {
  const Shrink f(d.attributes);
  const Var x = d.in(1);
  const Var outside = logical_or(less(x, number(x, -f.lambd)), greater(x, number(x, f.lambd)));
  return {where(outside, d.in(0), zero(d.in(0)))};
}
Parts decompose_gelu(const Decomposition& d) {
  const Gelu f(d.attributes);
  const Var x = d.in(1);
  if (f.tanh_form) {
    const Var t = tanh((x + square(x) * x * kGeluCubic) * kGeluScale);
    const Var inner = (square(x) * (3 * kGeluCubic) + 1) * kGeluScale;
    return {d.in(0) * ((t + 1) * 0.5 + x * (1 - square(t)) * inner * 0.5)};
  }
  const Var share = (erf(x * (1 / std::numbers::sqrt2)) + 1) * 0.5;
  const Var density = exp(square(x) * -0.5) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  return {d.in(0) * (share + x * density)};
}
Parts decompose_silu(const Decomposition& d) {
  const Var s = sigmoid(d.in(1));
  return {d.in(0) * (s * (d.in(1) * (1 - s) + 1))};
}
Parts decompose_mish(const Decomposition& d) {
  const Var t = tanh(softplus(d.in(1)));
  return {d.in(0) * (t + d.in(1) * sigmoid(d.in(1)) * (1 - square(t)))};
}
Parts decompose_hard_swish(const Decomposition& d) {
  const Var x = d.in(1);
  const Var middle = d.in(0) * ((x * 2 + 3) / 6);
  const Var upper = where(greater_equal(x, number(x, 3)), d.in(0), middle);
  return {where(less_equal(x, number(x, -3)), zero(x), upper)};
}
Parts decompose_clip(const Decomposition& d) {
  const Clip f(d.attributes);
  const Var x = d.in(1);
  const Var inside =
      logical_and(greater_equal(x, number(x, f.low)), less_equal(x, number(x, f.high)));
  return {where(inside, d.in(0), zero(x))};
}

OpDefinition grad_definition(std::string_view name, EvaluateRule evaluate,
                             DecomposeRule decompose) {
  return {.name = name,
          .inputs = exactly(2),
          .outputs = exactly(1),
          .infer = infer_grad,
          .gradient = Gradient::of_decomposition(),
          .in_place = InPlace::over_any_of({{0, 0}, {0, 1}}),
          .cost = elementwise_cost,
          .recompute = Recompute::kCheap,
          .layout = LayoutRule::kAny,
          .evaluate = evaluate,
          .decompose = decompose};
}

}  // namespace

Var relu_grad(Var dy, Var y) {
  return dy.builder().call1("relu_grad", {dy, y});
}
Var sigmoid_grad(Var dy, Var y) {
  return dy.builder().call1("sigmoid_grad", {dy, y});
}
Var tanh_grad(Var dy, Var y) {
  return dy.builder().call1("tanh_grad", {dy, y});
}

std::vector<OpDefinition> activation_grad_definitions() {
  return {
      grad_definition("relu_grad", evaluate_relu_grad, decompose_relu),
      grad_definition("sigmoid_grad", evaluate_sigmoid_grad, decompose_sigmoid),
      grad_definition("tanh_grad", evaluate_tanh_grad, decompose_tanh),
      grad_definition("leaky_relu_grad", evaluate_slope<LeakyRelu>, decompose_leaky_relu),
      grad_definition("elu_grad", evaluate_slope<Elu>, decompose_elu),
      grad_definition("selu_grad", evaluate_slope<Selu>, decompose_selu),
      grad_definition("celu_grad", evaluate_slope<Celu>, decompose_celu),
      grad_definition("hard_sigmoid_grad", evaluate_choice<HardSigmoid>, decompose_hard_sigmoid),
      grad_definition("thresholded_relu_grad", evaluate_choice<ThresholdedRelu>,
                      decompose_thresholded_relu),
      grad_definition("shrink_grad", evaluate_choice<Shrink>, decompose_shrink),
      grad_definition("gelu_grad", evaluate_slope<Gelu>, decompose_gelu),
      grad_definition("silu_grad", evaluate_slope<Silu>, decompose_silu),
      grad_definition("mish_grad", evaluate_slope<Mish>, decompose_mish),
      grad_definition("hard_swish_grad", evaluate_hard_swish_grad, decompose_hard_swish),
      grad_definition("clip_grad", evaluate_choice<Clip>, decompose_clip),
  };
}

}  // namespace plimsoll::ops
