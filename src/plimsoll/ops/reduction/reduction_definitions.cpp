#include <algorithm>
#include <limits>

#include "plimsoll/ops/definition/attribute_rules.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/presets.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/elementwise/binary.h"
#include "plimsoll/ops/elementwise/cast.h"
#include "plimsoll/ops/elementwise/comparison.h"
#include "plimsoll/ops/movement/element_walk.h"
#include "plimsoll/ops/movement/shaping.h"
#include "plimsoll/ops/reduction/reduction.h"

namespace plimsoll::ops {
namespace {

// The input's shape with the reduced extents 1: the result before `keepdims` decides.
Result<ir::Shape> kept_shape(const ir::Shape& x, const AttributeReader& attributes) {
  PLIMSOLL_TRY(const std::vector<int> axes, axes_attribute(attributes, "axes", x.rank()));
  ir::Shape out = x;
  for (const int axis : axes) out[axis] = 1;
  return out;
}

Result<std::vector<TensorType>> infer_reduce(const Call& call) {
  const ir::Shape& x = call.shape(0);
  const ir::DType dtype = call.type(0).dtype;
  if (dtype == ir::DType::kBool || dtype == ir::DType::kBit) {
    return bad_input("input is {}, expects numbers; cast it", ir::name(dtype));
  }
  PLIMSOLL_TRY(const std::vector<int> axes, axes_attribute(call.attributes(), "axes", x.rank()));
  PLIMSOLL_TRY(const ir::Shape kept, kept_shape(x, call.attributes()));
  if (call.attributes().integer("keepdims") != 0) return std::vector{TensorType{dtype, kept, {}}};
  ir::Shape out;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) out.push_back(x[axis]);
  }
  return std::vector{TensorType{dtype, out, {}}};
}

Result<std::vector<TensorType>> infer_extreme(const Call& call) {
  PLIMSOLL_TRY(std::vector<TensorType> out, infer_reduce(call));
  if (call.shape(0).elements() == 0 && out[0].shape.elements() > 0) {
    return bad_input("an empty {} has no extreme", ir::to_string(call.shape(0)));
  }
  return out;
}

// body(position in y, position in x), x in row-major order.
template <typename Body>
void for_each_reduced(const Evaluation& e, Body body) {
  const ir::Shape& x = e.in(0).type.shape;
  const auto kept = kept_shape(x, e.attributes);
  PLIMSOLL_CHECK(kept.has_value());
  const Index strides = broadcast_strides(*kept, x);
  for_each_strided(x, 0, strides, [&](std::int64_t i, std::int64_t j) {
    body(static_cast<std::size_t>(j), static_cast<std::size_t>(i));
  });
}

// Folds x into y from `start`, the neutral element.
template <typename Reals, typename Integers>
void fold(const Evaluation& e, double start, Reals on_reals, Integers on_integers) {
  Array& y = e.out();
  y.reals.assign(y.reals.size(), start);
  y.integers.assign(y.integers.size(), to_integer(start));
  for_each_reduced(e, [&](std::size_t to, std::size_t from) {
    if (y.is_real()) {
      y.reals[to] = on_reals(y.reals[to], e.in(0).reals[from]);
    } else {
      y.integers[to] = on_integers(y.integers[to], e.in(0).integers[from]);
    }
  });
}

std::int64_t wrapping_add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t wrapping_multiply(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

void evaluate_sum(const Evaluation& e) {
  fold(
      e, 0, [](double a, double b) { return a + b; }, wrapping_add);
}

void evaluate_mean(const Evaluation& e) {
  evaluate_sum(e);
  Array& y = e.out();
  if (y.elements() == 0) return;
  const std::int64_t count = e.in(0).elements() / y.elements();
  for (double& value : y.reals) value /= static_cast<double>(count);
  for (std::int64_t& value : y.integers) value = count == 0 ? 0 : value / count;
}

void evaluate_prod(const Evaluation& e) {
  fold(
      e, 1, [](double a, double b) { return a * b; }, wrapping_multiply);
}

// The first element of each group starts it, so that no dtype needs a neutral element.
template <typename Better>
void evaluate_extreme(const Evaluation& e, Better better) {
  Array& y = e.out();
  std::vector<bool> started(static_cast<std::size_t>(y.elements()), false);
  const bool is_unsigned = y.type.dtype == ir::DType::kU64;
  for_each_reduced(e, [&](std::size_t to, std::size_t from) {
    const Array& x = e.in(0);
    bool take = !started[to];
    if (!take && y.is_real())
      take = x.reals[from] != x.reals[from] || better(x.reals[from], y.reals[to]);
    if (!take && !y.is_real()) {
      take = is_unsigned ? better(static_cast<std::uint64_t>(x.integers[from]),
                                  static_cast<std::uint64_t>(y.integers[to]))
                         : better(x.integers[from], y.integers[to]);
    }
    started[to] = true;
    if (take) y.copy_element(static_cast<std::int64_t>(to), x, static_cast<std::int64_t>(from));
  });
}

void evaluate_max(const Evaluation& e) {
  evaluate_extreme(e, [](auto a, auto b) { return a > b; });
}
void evaluate_min(const Evaluation& e) {
  evaluate_extreme(e, [](auto a, auto b) { return a < b; });
}

// A result without its reduced axes gets them back with extent 1, so that it broadcasts over x.
Var with_kept_axes(const Backward& g, Var reduced) {
  return reshape(reduced, kept_shape(g.in(0).shape(), g.attributes).value_or(g.in(0).shape()));
}

double group_size(const Backward& g) {
  const std::int64_t groups = g.out(0).shape().elements();
  return groups == 0 ? 0 : static_cast<double>(g.in(0).shape().elements() / groups);
}

std::vector<Var> sum_gradient(const Backward& g) {
  return {expand(with_kept_axes(g, g.dy()), g.in(0).shape())};
}

std::vector<Var> mean_gradient(const Backward& g) {
  const double count = std::max(group_size(g), 1.0);
  return {expand(with_kept_axes(g, g.dy() * (1 / count)), g.in(0).shape())};
}

std::vector<Var> extreme_gradient(const Backward& g) {
  const Var is_extreme = cast(equal(g.in(0), with_kept_axes(g, g.out(0))), g.dy().dtype());
  const Var count = g.builder.call1("reduce_sum", {is_extreme}, g.attributes.given());
  return {is_extreme * with_kept_axes(g, g.dy() / count)};
}

// others[i] = product of the nonzero elements / x[i], if no other element is zero.
std::vector<Var> prod_gradient(const Backward& g) {
  const Var x = g.in(0);
  const Var is_zero = equal(x, number(x, 0));
  const Var nonzero = where(is_zero, number(x, 1), x);
  const Var zero = cast(is_zero, x.dtype());
  const Var product =
      with_kept_axes(g, g.builder.call1("reduce_prod", {nonzero}, g.attributes.given()));
  const Var zeros = with_kept_axes(g, g.builder.call1("reduce_sum", {zero}, g.attributes.given()));
  const Var alone = cast(equal(zeros, zero), x.dtype());
  return {with_kept_axes(g, g.dy()) * (product / nonzero) * alone};
}

OpDefinition reduce_definition(std::string_view name, InferRule infer, GradientRule gradient,
                               EvaluateRule evaluate) {
  return moving_definition(name, 1, infer, Gradient(gradient), evaluate, cost_per_input<1>)
      .having({attribute::integers("axes"), attribute::integer("keepdims", 0)});
}

}  // namespace

std::vector<OpDefinition> reduction_definitions() {
  return {
      reduce_definition("reduce_sum", infer_reduce, sum_gradient, evaluate_sum),
      reduce_definition("reduce_mean", infer_reduce, mean_gradient, evaluate_mean),
      reduce_definition("reduce_max", infer_extreme, extreme_gradient, evaluate_max),
      reduce_definition("reduce_min", infer_extreme, extreme_gradient, evaluate_min),
      reduce_definition("reduce_prod", infer_reduce, prod_gradient, evaluate_prod),
  };
}

}  // namespace plimsoll::ops
