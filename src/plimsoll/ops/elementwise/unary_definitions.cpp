#include <cmath>
#include <numbers>

#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/presets.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/elementwise/activation.h"
#include "plimsoll/ops/elementwise/binary.h"
#include "plimsoll/ops/elementwise/unary.h"
#include "plimsoll/ops/elementwise/unary_evaluation.h"

namespace plimsoll::ops {
namespace {

// A real function as an EvaluateRule of its own type: the definition names it without a lambda per
// line.
template <double (*function)(double)>
void evaluate_function(const Evaluation& e) {
  evaluate_real(e, function);
}

template <typename Reals, typename Integers>
void evaluate_either(const Evaluation& e, Reals on_reals, Integers on_integers) {
  evaluate_real(e, on_reals);
  const Array& x = e.in(0);
  for (std::size_t i = 0; i < x.integers.size(); ++i)
    e.out().integers[i] = on_integers(x.integers[i]);
}

std::int64_t negative(std::int64_t x) {
  return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(x));
}

void evaluate_neg(const Evaluation& e) {
  evaluate_either(
      e, [](double x) { return -x; }, negative);
}
void evaluate_abs(const Evaluation& e) {
  const bool keep = e.in(0).type.dtype == ir::DType::kU64;
  evaluate_either(
      e, [](double x) { return std::abs(x); },
      [keep](std::int64_t x) { return x < 0 && !keep ? negative(x) : x; });
}
void evaluate_sign(const Evaluation& e) {
  const bool is_unsigned = e.in(0).type.dtype == ir::DType::kU64;
  evaluate_either(
      e, [](double x) { return Sign<ReferenceMath>().value(x); },
      [=](std::int64_t x) -> std::int64_t { return is_unsigned ? x != 0 : (x > 0) - (x < 0); });
}
void evaluate_identity(const Evaluation& e) {
  e.out().reals = e.in(0).reals;
  e.out().integers = e.in(0).integers;
}

template <bool (*test)(double)>
void evaluate_test(const Evaluation& e) {
  for (std::size_t i = 0; i < e.in(0).reals.size(); ++i) {
    e.out().integers[i] = test(e.in(0).reals[i]) ? 1 : 0;
  }
}
bool test_nan(double x) {
  return std::isnan(x);
}
bool test_inf(double x) {
  return std::isinf(x);
}

Result<std::vector<TensorType>> infer_number(const Call& call) {
  const ir::DType dtype = call.type(0).dtype;
  if (dtype == ir::DType::kBool || dtype == ir::DType::kBit) {
    return bad_input("input is {}, expects numbers", ir::name(dtype));
  }
  return same_as_first(call);
}

Result<std::vector<TensorType>> infer_test(const Call& call) {
  PLIMSOLL_TRY(std::vector<TensorType> out, same_as_first_float(call));
  out[0].dtype = ir::DType::kBool;
  return out;
}

std::vector<View> whole_input(const Call&, std::span<const TensorType>) {
  return {View{}};
}

using Adjoint = std::vector<Var>;
Adjoint neg_gradient(const Backward& g) {
  return {neg(g.dy())};
}
Adjoint identity_gradient(const Backward& g) {
  return {g.dy()};
}
Adjoint abs_gradient(const Backward& g) {
  return {g.dy() * sign(g.in(0))};
}
Adjoint reciprocal_gradient(const Backward& g) {
  return {neg(g.dy() * square(g.out(0)))};
}
Adjoint sqrt_gradient(const Backward& g) {
  return {g.dy() * 0.5 / g.out(0)};
}
// d x^-1/2 = -1/2 x^-3/2 = -1/2 y^3
Adjoint rsqrt_gradient(const Backward& g) {
  return {g.dy() * -0.5 * (square(g.out(0)) * g.out(0))};
}
Adjoint exp_gradient(const Backward& g) {
  return {g.dy() * g.out(0)};
}
Adjoint log_gradient(const Backward& g) {
  return {g.dy() / g.in(0)};
}
Adjoint sin_gradient(const Backward& g) {
  return {g.dy() * cos(g.in(0))};
}
Adjoint cos_gradient(const Backward& g) {
  return {neg(g.dy() * sin(g.in(0)))};
}
Adjoint tan_gradient(const Backward& g) {
  return {g.dy() * (square(g.out(0)) + 1)};
}
Adjoint asin_gradient(const Backward& g) {
  return {g.dy() * rsqrt(1 - square(g.in(0)))};
}
Adjoint acos_gradient(const Backward& g) {
  return {neg(g.dy() * rsqrt(1 - square(g.in(0))))};
}
Adjoint atan_gradient(const Backward& g) {
  return {g.dy() / (square(g.in(0)) + 1)};
}
Adjoint sinh_gradient(const Backward& g) {
  return {g.dy() * cosh(g.in(0))};
}
Adjoint cosh_gradient(const Backward& g) {
  return {g.dy() * sinh(g.in(0))};
}
Adjoint tanh_gradient(const Backward& g) {
  return {tanh_grad(g.dy(), g.out(0))};
}
Adjoint asinh_gradient(const Backward& g) {
  return {g.dy() * rsqrt(square(g.in(0)) + 1)};
}
Adjoint acosh_gradient(const Backward& g) {
  return {g.dy() * rsqrt(square(g.in(0)) - 1)};
}
Adjoint atanh_gradient(const Backward& g) {
  return {g.dy() / (1 - square(g.in(0)))};
}
Adjoint erf_gradient(const Backward& g) {
  return {g.dy() * (exp(neg(square(g.in(0)))) * (2 * std::numbers::inv_sqrtpi))};
}
Adjoint sigmoid_gradient(const Backward& g) {
  return {sigmoid_grad(g.dy(), g.out(0))};
}
Adjoint softplus_gradient(const Backward& g) {
  return {g.dy() * sigmoid(g.in(0))};
}
Adjoint softsign_gradient(const Backward& g) {
  return {g.dy() / square(abs(g.in(0)) + 1)};
}

OpDefinition unary_definition(std::string_view name, InferRule infer, Gradient gradient,
                              EvaluateRule evaluate) {
  return elementwise_definition(name, 1, infer, gradient, InPlace::over(0), evaluate);
}

OpDefinition smooth(std::string_view name, GradientRule gradient, EvaluateRule evaluate) {
  return unary_definition(name, same_as_first_float, Gradient(gradient), evaluate);
}

OpDefinition flat(std::string_view name, EvaluateRule evaluate) {
  return unary_definition(name, same_as_first_float, Gradient::none(), evaluate);
}

OpDefinition test_definition(std::string_view name, EvaluateRule evaluate) {
  OpDefinition definition = unary_definition(name, infer_test, Gradient::none(), evaluate);
  definition.in_place = InPlace::never();
  return definition;
}

OpDefinition identity_definition() {
  OpDefinition definition =
      unary_definition("identity", same_as_first, Gradient(identity_gradient), evaluate_identity);
  definition.views = whole_input;
  definition.cost = no_cost;
  definition.recompute = Recompute::kFree;
  return definition;
}

}  // namespace

std::vector<OpDefinition> unary_definitions() {
  return {
      unary_definition("neg", infer_number, Gradient(neg_gradient), evaluate_neg),
      unary_definition("abs", infer_number, Gradient(abs_gradient), evaluate_abs),
      unary_definition("sign", infer_number, Gradient::none(), evaluate_sign),
      identity_definition(),
      flat("floor", evaluate_function<std::floor>),
      flat("ceil", evaluate_function<std::ceil>),
      flat("round", evaluate_function<std::nearbyint>),
      smooth("reciprocal", reciprocal_gradient, evaluate_value<Reciprocal>),
      smooth("sqrt", sqrt_gradient, evaluate_function<std::sqrt>),
      smooth("rsqrt", rsqrt_gradient, evaluate_value<Rsqrt>),
      smooth("exp", exp_gradient, evaluate_function<std::exp>),
      smooth("log", log_gradient, evaluate_function<std::log>),
      smooth("sin", sin_gradient, evaluate_function<std::sin>),
      smooth("cos", cos_gradient, evaluate_function<std::cos>),
      smooth("tan", tan_gradient, evaluate_function<std::tan>),
      smooth("asin", asin_gradient, evaluate_function<std::asin>),
      smooth("acos", acos_gradient, evaluate_function<std::acos>),
      smooth("atan", atan_gradient, evaluate_function<std::atan>),
      smooth("sinh", sinh_gradient, evaluate_function<std::sinh>),
      smooth("cosh", cosh_gradient, evaluate_function<std::cosh>),
      smooth("tanh", tanh_gradient, evaluate_function<std::tanh>),
      smooth("asinh", asinh_gradient, evaluate_function<std::asinh>),
      smooth("acosh", acosh_gradient, evaluate_function<std::acosh>),
      smooth("atanh", atanh_gradient, evaluate_function<std::atanh>),
      smooth("erf", erf_gradient, evaluate_function<std::erf>),
      smooth("sigmoid", sigmoid_gradient, evaluate_value<Sigmoid>),
      smooth("softplus", softplus_gradient, evaluate_value<Softplus>),
      smooth("softsign", softsign_gradient, evaluate_value<Softsign>),
      test_definition("is_nan", evaluate_test<test_nan>),
      test_definition("is_inf", evaluate_test<test_inf>),
  };
}

}  // namespace plimsoll::ops
