#include "plimsoll/ops/movement/padding.h"

#include "plimsoll/base/checked.h"
#include "plimsoll/ops/definition/attribute_rules.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/elementwise/binary.h"
#include "plimsoll/ops/elementwise/cast.h"
#include "plimsoll/ops/elementwise/unary.h"
#include "plimsoll/ops/movement/element_walk.h"
#include "plimsoll/ops/movement/indexing.h"

namespace plimsoll::ops {
namespace {

// Amounts that can be added to and negated without a thought.
constexpr std::int64_t kMost = std::int64_t{1} << 48;

Result<std::vector<TensorType>> infer_pad(const Call& call) {
  const ir::Shape& x = call.shape(0);
  PLIMSOLL_TRY(const ir::Ints pads, required_integers(call.attributes(), "pads", 2 * x.rank()));
  const std::string mode = call.attributes().text("mode");
  ir::Ints dims;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t before = pads[static_cast<std::size_t>(axis)];
    const std::int64_t after = pads[static_cast<std::size_t>(axis + x.rank())];
    const auto front = checked_add(x[axis], before);
    const auto extent = front ? checked_add(*front, after) : front;
    if (!extent || *extent < 0 || std::max(before, after) > kMost ||
        std::min(before, after) < -kMost) {
      return bad_input("axis {}: cannot pad an extent of {} by {} and {}", axis, x[axis], before,
                       after);
    }
    if (mode != "constant" && x[axis] == 0 && *extent > 0) {
      return bad_input("axis {}: nothing to {} in an extent of 0", axis, mode);
    }
    dims.push_back(*extent);
  }
  PLIMSOLL_TRY(const ir::Shape shape, ir::Shape::make(dims));
  return std::vector{TensorType{call.type(0).dtype, shape, {}}};
}

std::int64_t modulo(std::int64_t a, std::int64_t n) {
  const std::int64_t rest = a % n;
  return rest < 0 ? rest + n : rest;
}

// Which element of an extent of n > 0 stands at place i (outside: i < 0 or i >= n); -1: none.
std::int64_t origin(std::int64_t i, std::int64_t n, const std::string& mode) {
  if (i >= 0 && i < n) return i;
  if (mode == "constant") return -1;
  if (mode == "edge") return i < 0 ? 0 : n - 1;
  if (mode == "wrap") return modulo(i, n);
  if (n == 1) return 0;
  const std::int64_t period = 2 * (n - 1);
  const std::int64_t place = modulo(i, period);
  return place < n ? place : period - place;
}

void evaluate_pad(const Evaluation& e) {
  const ir::Ints pads = e.attributes.integers("pads");
  const std::string mode = e.attributes.text("mode");
  const ir::Shape& x = e.in(0).type.shape;
  Array& y = e.out();
  y.reals.assign(y.reals.size(), e.attributes.real("value"));
  y.integers.assign(y.integers.size(), to_integer(e.attributes.real("value")));
  if (y.elements() == 0 || x.elements() == 0) return;
  AxisTables tables;
  for (int axis = 0; axis < x.rank(); ++axis) {
    auto& table = tables.emplace_back();
    for (std::int64_t i = 0; i < y.type.shape[axis]; ++i) {
      table.push_back(origin(i - pads[static_cast<std::size_t>(axis)], x[axis], mode));
    }
  }
  copy_mapped(y, e.in(0), tables);
}

// `origin` as nodes: the indices of x that one padded axis shows.
Var origin_indices(Builder& builder, std::int64_t before, std::int64_t extent, std::int64_t n,
                   const std::string& mode) {
  const Var place = iota(builder, {ir::DType::kI64, {extent}}, 0, -before);
  const auto whole = [&](std::int64_t value) { return number(place, static_cast<double>(value)); };
  if (mode == "edge") return minimum(maximum(place, whole(0)), whole(n - 1));
  if (mode == "wrap") return mod(place, whole(n));
  if (n == 1) return mul(place, whole(0));
  const Var inside = mod(place, whole(2 * (n - 1)));
  return minimum(inside, sub(whole(2 * (n - 1)), inside));
}

std::vector<Var> pad_gradient(const Backward& g) {
  const ir::Ints pads = g.attributes.integers("pads");
  const std::string mode = g.attributes.text("mode");
  if (mode == "constant") {
    ir::Ints back;
    for (const std::int64_t amount : pads) back.push_back(-amount);
    return {pad(g.dy(), back)};
  }
  const ir::Shape x = g.in(0).shape();
  Var sum = g.dy();
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t before = pads[static_cast<std::size_t>(axis)];
    if (before == 0 && sum.dim(axis) == x[axis]) continue;
    ir::Shape shape = sum.shape();
    const Var indices = origin_indices(g.builder, before, shape[axis], x[axis], mode);
    shape[axis] = x[axis];
    sum = gather_grad(sum, indices, axis, shape);
  }
  return {sum};
}

}  // namespace

Var pad(Var x, const ir::Ints& pads, double value) {
  return x.builder().call1("pad", {x}, {{"pads", pads}, {"value", value}});
}

Var pad(Var x, const ir::Ints& pads, std::string_view mode) {
  return x.builder().call1("pad", {x}, {{"pads", pads}, {"mode", std::string(mode)}});
}

std::vector<OpDefinition> padding_definitions() {
  return {{.name = "pad",
           .inputs = exactly(1),
           .outputs = exactly(1),
           .attributes = {attribute::integers("pads"),
                          attribute::choice("mode", {"constant", "reflect", "edge", "wrap"}),
                          attribute::real("value", 0)},
           .infer = infer_pad,
           .gradient = Gradient(pad_gradient),
           .in_place = InPlace::never(),
           .cost = bytes_cost,
           .recompute = Recompute::kCheap,
           .layout = LayoutRule::kChannels,
           .evaluate = evaluate_pad}};
}

}  // namespace plimsoll::ops
