#include "plimsoll/ops/movement/resize.h"

#include <algorithm>
#include <cmath>

#include "plimsoll/ops/definition/attribute_rules.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/presets.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/movement/element_walk.h"

namespace plimsoll::ops {
namespace {

double place_of(std::int64_t i, std::int64_t n, std::int64_t m, const std::string& coordinates) {
  const auto at = static_cast<double>(i);
  const auto from = static_cast<double>(n);
  const auto to = static_cast<double>(m);
  if (n == m) return at;
  if (coordinates == "asymmetric") return at * from / to;
  if (coordinates == "align_corners") return m == 1 ? 0 : at * (from - 1) / (to - 1);
  if (coordinates == "pytorch_half_pixel" && m == 1) return 0;
  return (at + 0.5) * from / to - 0.5;
}

double nearest(double place, const std::string& rounding) {
  if (rounding == "floor") return std::floor(place);
  if (rounding == "ceil") return std::ceil(place);
  if (rounding == "round_prefer_ceil") return std::floor(place + 0.5);
  return std::ceil(place - 0.5);
}

}  // namespace

std::vector<Tap> taps_of(std::int64_t n, std::int64_t m, const AttributeReader& attributes) {
  const std::string coordinates = attributes.text("coordinates");
  const std::string rounding = attributes.text("rounding");
  const bool linear = attributes.text("mode") == "linear";
  const auto last = static_cast<double>(n - 1);
  std::vector<Tap> out;
  for (std::int64_t i = 0; i < m; ++i) {
    const double place = place_of(i, n, m, coordinates);
    const double inside = std::clamp(linear ? place : nearest(place, rounding), 0.0, last);
    const auto first = static_cast<std::int64_t>(inside);
    out.push_back({first, std::min(first + 1, n - 1), inside - static_cast<double>(first)});
  }
  return out;
}

namespace {

// body(position in the small sense: y of the forward, position in x, weight) for every nonzero
// entry.
template <typename Body>
void for_each_entry(const ir::Shape& x, const ir::Shape& y, const AttributeReader& attributes,
                    Body body) {
  if (x.elements() == 0 || y.elements() == 0) return;
  std::vector<std::vector<Tap>> taps;
  for (int axis = 0; axis < x.rank(); ++axis) taps.push_back(taps_of(x[axis], y[axis], attributes));
  const Index strides = x.strides();
  for_each_element(y, [&](std::int64_t i, const Index& index) {
    // Every combination of first and second along the axes.
    for (int corner = 0; corner < 1 << x.rank(); ++corner) {
      std::int64_t at = 0;
      double weight = 1;
      for (int axis = 0; axis < x.rank(); ++axis) {
        const auto place = static_cast<std::size_t>(axis);
        const Tap& tap = taps[place][static_cast<std::size_t>(index[place])];
        const bool second = (corner >> axis) & 1;
        at += (second ? tap.second : tap.first) * strides[place];
        weight *= second ? tap.weight : 1 - tap.weight;
      }
      if (weight != 0) body(i, at, weight);
    }
  });
}

// resize and resize_grad both take the shape of their result.
Result<std::vector<TensorType>> infer_resize(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(same_as_first_float(call));
  PLIMSOLL_TRY(const ir::Shape shape, shape_attribute(call.attributes(), "shape"));
  const ir::Shape& x = call.shape(0);
  if (shape.rank() != x.rank()) {
    return bad_input("cannot resize {} to {}: the ranks differ", ir::to_string(x),
                     ir::to_string(shape));
  }
  for (int axis = 0; axis < x.rank(); ++axis) {
    if ((x[axis] == 0) != (shape[axis] == 0)) {
      return bad_input("cannot resize {} to {}: one is empty", ir::to_string(x),
                       ir::to_string(shape));
    }
  }
  return std::vector{TensorType{call.type(0).dtype, shape, {}}};
}

void evaluate_resize(const Evaluation& e) {
  for_each_entry(e.in(0).type.shape, e.out().type.shape, e.attributes,
                 [&](std::int64_t i, std::int64_t at, double weight) {
                   e.out().reals[static_cast<std::size_t>(i)] +=
                       weight * e.in(0).reals[static_cast<std::size_t>(at)];
                 });
}

void evaluate_resize_grad(const Evaluation& e) {
  for_each_entry(e.out().type.shape, e.in(0).type.shape, e.attributes,
                 [&](std::int64_t i, std::int64_t at, double weight) {
                   e.out().reals[static_cast<std::size_t>(at)] +=
                       weight * e.in(0).reals[static_cast<std::size_t>(i)];
                 });
}

ir::Attributes with_shape(const AttributeReader& attributes, const ir::Shape& shape) {
  ir::Attributes out = attributes.given();
  out.set("shape", ir::Ints(shape.begin(), shape.end()));
  return out;
}

std::vector<Var> resize_gradient(const Backward& g) {
  return {g.builder.call1("resize_grad", {g.dy()}, with_shape(g.attributes, g.in(0).shape()))};
}

std::vector<Var> resize_grad_gradient(const Backward& g) {
  return {g.builder.call1("resize", {g.dy()}, with_shape(g.attributes, g.in(0).shape()))};
}

OpDefinition resize_definition(std::string_view name, GradientRule gradient,
                               EvaluateRule evaluate) {
  return moving_definition(name, 1, infer_resize, Gradient(gradient), evaluate, elementwise_cost)
      .having({attribute::integers("shape"), attribute::choice("mode", {"nearest", "linear"}),
               attribute::choice("coordinates", {"half_pixel", "pytorch_half_pixel", "asymmetric",
                                                 "align_corners"}),
               attribute::choice("rounding",
                                 {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"})});
}

}  // namespace

Var resize(Var x, ir::Shape shape, const Resize& options) {
  return x.builder().call1("resize", {x},
                           {{"shape", ir::Ints(shape.begin(), shape.end())},
                            {"mode", options.mode},
                            {"coordinates", options.coordinates},
                            {"rounding", options.rounding}});
}

std::vector<OpDefinition> resize_definitions() {
  return {
      resize_definition("resize", resize_gradient, evaluate_resize),
      resize_definition("resize_grad", resize_grad_gradient, evaluate_resize_grad),
  };
}

}  // namespace plimsoll::ops
