#include "plimsoll/ops/normalization/softmax.h"

#include <cmath>
#include <limits>

#include "plimsoll/ops/compose.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/expect.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/movement/element_walk.h"

namespace plimsoll::ops {
namespace {

std::int64_t axis_in(const AttributeReader& attributes) {
  return attributes.integer("axis");
}

Result<std::vector<TensorType>> infer_softmax(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_one_float(call));
  PLIMSOLL_RETURN_IF_ERROR(normal_axis(axis_in(call.attributes()), call.shape(0).rank()));
  if (call.size() > 1) PLIMSOLL_RETURN_IF_ERROR(expect_shape(call, 1, call.shape(0)));
  return std::vector{call.type(0)};
}

// One line of softmax or of its logarithm.
void soften(const double* x, double* y, std::int64_t step, std::int64_t count, bool as_logarithm) {
  double largest = -std::numeric_limits<double>::infinity();
  for (std::int64_t i = 0; i < count; ++i) largest = std::max(largest, x[i * step]);
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += std::exp(x[i * step] - largest);
  for (std::int64_t i = 0; i < count; ++i) {
    const double shifted = x[i * step] - largest;
    y[i * step] = as_logarithm ? shifted - std::log(sum) : std::exp(shifted) / sum;
  }
}

template <bool kAsLogarithm>
void evaluate_softmax(const Evaluation& e) {
  const ir::Shape& shape = e.in(0).type.shape;
  const int axis = verified_axis(e.attributes, shape);
  for_each_line(shape, axis, [&](std::int64_t, std::int64_t first, std::int64_t step) {
    soften(e.in(0).reals.data() + first, e.out().reals.data() + first, step, shape[axis],
           kAsLogarithm);
  });
}

template <bool kOfLogarithm>
void evaluate_softmax_grad(const Evaluation& e) {
  const ir::Shape& shape = e.in(0).type.shape;
  const int axis = verified_axis(e.attributes, shape);
  for_each_line(shape, axis, [&](std::int64_t, std::int64_t first, std::int64_t step) {
    const double* dy = e.in(0).reals.data() + first;
    const double* y = e.in(1).reals.data() + first;
    double* dx = e.out().reals.data() + first;
    const std::int64_t end = shape[axis] * step;
    double sum = 0;
    for (std::int64_t i = 0; i < end; i += step) sum += kOfLogarithm ? dy[i] : dy[i] * y[i];
    for (std::int64_t i = 0; i < end; i += step)
      dx[i] = kOfLogarithm ? dy[i] - std::exp(y[i]) * sum : y[i] * (dy[i] - sum);
  });
}

std::vector<Var> softmax_gradient(const Backward& g) {
  return {g.builder.call1(fmt::format("{}_grad", g.attributes.op()), {g.dy(), g.out(0)},
                          {{"axis", axis_in(g.attributes)}})};
}

std::vector<Var> decompose_softmax_grad(const Decomposition& d) {
  const ir::Ints axes{axis_in(d.attributes)};
  const Var product = d.in(0) * d.in(1);
  return {product - d.in(1) * sum_over(product, axes)};
}

std::vector<Var> decompose_log_softmax_grad(const Decomposition& d) {
  const ir::Ints axes{axis_in(d.attributes)};
  return {d.in(0) - exp(d.in(1)) * sum_over(d.in(0), axes)};
}

OpDefinition forward_definition(std::string_view name, EvaluateRule evaluate) {
  return {.name = name,
          .inputs = exactly(1),
          .outputs = exactly(1),
          .attributes = {attribute::integer("axis", -1)},
          .infer = infer_softmax,
          .gradient = Gradient(softmax_gradient),
          .in_place = InPlace::over(0),
          // Largest, difference, exponential, sum, quotient.
          .cost = cost_per_element<5>,
          .recompute = Recompute::kCheap,
          .layout = LayoutRule::kPlain,
          .evaluate = evaluate};
}

OpDefinition backward_definition(std::string_view name, EvaluateRule evaluate,
                                 DecomposeRule decompose) {
  return {.name = name,
          .inputs = exactly(2),
          .outputs = exactly(1),
          .attributes = {attribute::integer("axis", -1)},
          .infer = infer_softmax,
          .gradient = Gradient::of_decomposition(),
          .in_place = InPlace::over_any_of({{0, 0}, {0, 1}}),
          .cost = cost_per_element<4>,
          .recompute = Recompute::kCheap,
          .layout = LayoutRule::kPlain,
          .evaluate = evaluate,
          .decompose = decompose};
}

}  // namespace

Var softmax(Var x, std::int64_t axis) {
  return x.builder().call1("softmax", {x}, {{"axis", axis}});
}

Var log_softmax(Var x, std::int64_t axis) {
  return x.builder().call1("log_softmax", {x}, {{"axis", axis}});
}

std::vector<OpDefinition> softmax_definitions() {
  return {
      forward_definition("softmax", evaluate_softmax<false>),
      forward_definition("log_softmax", evaluate_softmax<true>),
      backward_definition("softmax_grad", evaluate_softmax_grad<false>, decompose_softmax_grad),
      backward_definition("log_softmax_grad", evaluate_softmax_grad<true>,
                          decompose_log_softmax_grad),
  };
}

}  // namespace plimsoll::ops
