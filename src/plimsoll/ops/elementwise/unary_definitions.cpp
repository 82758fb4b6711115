#include <cmath>
#include <numbers>

#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/presets.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/elementwise/activation.h"
#include "plimsoll/ops/elementwise/binary.h"
#include "plimsoll/ops/elementwise/unary.h"
#include "plimsoll/ops/elementwise/unary_evaluation.h"
#include "plimsoll/ops/movement/element_walk.h"

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
  copy_all(e.out(), e.in(0));
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

// The gradient of a function of one tensor: its one adjoint is an expression of g.
template <typename Adjoint>
Gradient gradient_of(Adjoint) {
  return Gradient([](const Backward& g) { return std::vector<Var>{Adjoint()(g)}; });
}

OpDefinition unary_definition(std::string_view name, InferRule infer, Gradient gradient,
                              EvaluateRule evaluate) {
  return elementwise_definition(name, 1, infer, gradient, InPlace::over(0), evaluate);
}

template <typename Adjoint>
OpDefinition smooth(std::string_view name, EvaluateRule evaluate, Adjoint adjoint) {
  return unary_definition(name, same_as_first_float, gradient_of(adjoint), evaluate);
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
      unary_definition("identity", same_as_first,
                       gradient_of([](const Backward& g) { return g.dy(); }), evaluate_identity);
  definition.views = whole_input;
  definition.cost = no_cost;
  definition.recompute = Recompute::kFree;
  return definition;
}

}  // namespace

std::vector<OpDefinition> unary_definitions() {
  return {
      unary_definition("neg", infer_number,
                       gradient_of([](const Backward& g) { return neg(g.dy()); }), evaluate_neg),
      unary_definition("abs", infer_number,
                       gradient_of([](const Backward& g) { return g.dy() * sign(g.in(0)); }),
                       evaluate_abs),
      unary_definition("sign", infer_number, Gradient::none(), evaluate_sign),
      identity_definition(),
      flat("floor", evaluate_function<std::floor>),
      flat("ceil", evaluate_function<std::ceil>),
      flat("round", evaluate_function<std::nearbyint>),
      smooth("reciprocal", evaluate_value<Reciprocal>,
             [](const Backward& g) { return neg(g.dy() * square(g.out(0))); }),
      smooth("sqrt", evaluate_function<std::sqrt>,
             [](const Backward& g) { return g.dy() * 0.5 / g.out(0); }),
      // d x^-1/2 = -1/2 x^-3/2 = -1/2 y^3
      smooth("rsqrt", evaluate_value<Rsqrt>,
             [](const Backward& g) { return g.dy() * -0.5 * (square(g.out(0)) * g.out(0)); }),
      smooth("exp", evaluate_function<std::exp>,
             [](const Backward& g) { return g.dy() * g.out(0); }),
      smooth("log", evaluate_function<std::log>,
             [](const Backward& g) { return g.dy() / g.in(0); }),
      smooth("sin", evaluate_function<std::sin>,
             [](const Backward& g) { return g.dy() * cos(g.in(0)); }),
      smooth("cos", evaluate_function<std::cos>,
             [](const Backward& g) { return neg(g.dy() * sin(g.in(0))); }),
      smooth("tan", evaluate_function<std::tan>,
             [](const Backward& g) { return g.dy() * (square(g.out(0)) + 1); }),
      smooth("asin", evaluate_function<std::asin>,
             [](const Backward& g) { return g.dy() * rsqrt(1 - square(g.in(0))); }),
      smooth("acos", evaluate_function<std::acos>,
             [](const Backward& g) { return neg(g.dy() * rsqrt(1 - square(g.in(0)))); }),
      smooth("atan", evaluate_function<std::atan>,
             [](const Backward& g) { return g.dy() / (square(g.in(0)) + 1); }),
      smooth("sinh", evaluate_function<std::sinh>,
             [](const Backward& g) { return g.dy() * cosh(g.in(0)); }),
      smooth("cosh", evaluate_function<std::cosh>,
             [](const Backward& g) { return g.dy() * sinh(g.in(0)); }),
      smooth("tanh", evaluate_function<std::tanh>,
             [](const Backward& g) { return tanh_grad(g.dy(), g.out(0)); }),
      smooth("asinh", evaluate_function<std::asinh>,
             [](const Backward& g) { return g.dy() * rsqrt(square(g.in(0)) + 1); }),
      smooth("acosh", evaluate_function<std::acosh>,
             [](const Backward& g) { return g.dy() * rsqrt(square(g.in(0)) - 1); }),
      smooth("atanh", evaluate_function<std::atanh>,
             [](const Backward& g) { return g.dy() / (1 - square(g.in(0))); }),
      smooth("erf", evaluate_function<std::erf>,
             [](const Backward& g) {
               return g.dy() * (exp(neg(square(g.in(0)))) * (2 * std::numbers::inv_sqrtpi));
             }),
      smooth("sigmoid", evaluate_value<Sigmoid>,
             [](const Backward& g) { return sigmoid_grad(g.dy(), g.out(0)); }),
      smooth("softplus", evaluate_value<Softplus>,
             [](const Backward& g) { return g.dy() * sigmoid(g.in(0)); }),
      smooth("softsign", evaluate_value<Softsign>,
             [](const Backward& g) { return g.dy() / square(abs(g.in(0)) + 1); }),
      test_definition("is_nan", evaluate_test<test_nan>),
      test_definition("is_inf", evaluate_test<test_inf>),
  };
}

}  // namespace plimsoll::ops
