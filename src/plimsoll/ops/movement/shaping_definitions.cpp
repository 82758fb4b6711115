#include <numeric>
#include <optional>

#include "plimsoll/base/checked.h"
#include "plimsoll/ops/definition/attribute_rules.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/presets.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/movement/element_walk.h"
#include "plimsoll/ops/movement/shaping.h"
#include "plimsoll/ops/reduction/reduction.h"

namespace plimsoll::ops {
namespace {

std::vector<TensorType> plain(ir::DType dtype, const ir::Shape& shape) {
  return {TensorType{dtype, shape, {}}};
}

// The axes of a tensor as they lie in memory, outermost first, without those of a single place,
// which lie anywhere; `names` says what to call axis i. Nothing where there are blocks.
std::optional<ir::Ints> axes_in_memory(const TensorType& type, const ir::Ints& names) {
  if (type.layout.block_count > 0) return std::nullopt;
  ir::Ints out;
  for (int i = 0; i < type.shape.rank(); ++i) {
    const int axis =
        type.layout.is_row_major() ? i : type.layout.order[static_cast<std::size_t>(i)];
    if (type.shape[axis] != 1) out.push_back(names[static_cast<std::size_t>(axis)]);
  }
  return out;
}

// The output is the input's bytes where its axes, which are axes perm[0], perm[1], ... of the
// input, lie in the same order: [N, C, H, W] channels last is [N, H, W, C] row-major.
std::vector<View> same_bytes(const TensorType& in, const TensorType& out, const ir::Ints& perm) {
  ir::Ints own(static_cast<std::size_t>(in.shape.rank()));
  std::iota(own.begin(), own.end(), 0);
  const auto before = axes_in_memory(in, own);
  const auto after = axes_in_memory(out, perm);
  return before && after && *before == *after ? std::vector<View>{View{}} : std::vector<View>{};
}

// reshape

Result<std::vector<TensorType>> infer_reshape(const Call& call) {
  PLIMSOLL_TRY(const ir::Shape shape, shape_attribute(call.attributes(), "shape"));
  if (shape.elements() != call.shape(0).elements()) {
    return bad_input("{} has {} elements, {} would have {}", ir::to_string(call.shape(0)),
                     call.shape(0).elements(), ir::to_string(shape), shape.elements());
  }
  return plain(call.type(0).dtype, shape);
}

void evaluate_copy(const Evaluation& e) {
  copy_all(e.out(), e.in(0));
}

std::vector<View> reshape_views(const Call&, std::span<const TensorType>) {
  return {View{}};
}

std::vector<Var> reshape_gradient(const Backward& g) {
  return {reshape(g.dy(), g.in(0).shape())};
}

// transpose

Result<std::vector<TensorType>> infer_transpose(const Call& call) {
  const ir::Shape& x = call.shape(0);
  PLIMSOLL_TRY(const ir::Ints perm, required_integers(call.attributes(), "perm", x.rank()));
  std::array<bool, ir::kMaxRank> seen{};
  ir::Shape out;
  for (const std::int64_t axis : perm) {
    if (axis < 0 || axis >= x.rank() || seen[static_cast<std::size_t>(axis)]) {
      return bad_input("perm is no permutation of {} axes", x.rank());
    }
    seen[static_cast<std::size_t>(axis)] = true;
    out.push_back(x[static_cast<int>(axis)]);
  }
  return plain(call.type(0).dtype, out);
}

void evaluate_transpose(const Evaluation& e) {
  const ir::Ints perm = e.attributes.integers("perm");
  const Index from = e.in(0).type.shape.strides();
  Index strides{};
  for (std::size_t i = 0; i < perm.size(); ++i)
    strides[i] = from[static_cast<std::size_t>(perm[i])];
  copy_strided(e.out(), e.in(0), 0, strides);
}

std::vector<View> transpose_views(const Call& call, std::span<const TensorType> outputs) {
  return same_bytes(call.type(0), outputs[0], call.attributes().integers("perm"));
}

std::vector<Var> transpose_gradient(const Backward& g) {
  const ir::Ints perm = g.attributes.integers("perm");
  ir::Ints inverse(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) {
    inverse[static_cast<std::size_t>(perm[i])] = static_cast<std::int64_t>(i);
  }
  return {transpose(g.dy(), inverse)};
}

// expand

Result<std::vector<TensorType>> infer_expand(const Call& call) {
  PLIMSOLL_TRY(const ir::Shape shape, shape_attribute(call.attributes(), "shape"));
  const auto both = ir::broadcast(call.shape(0), shape);
  if (!both || *both != shape) {
    return bad_input("{} does not broadcast to {}", ir::to_string(call.shape(0)),
                     ir::to_string(shape));
  }
  return plain(call.type(0).dtype, shape);
}

void evaluate_expand(const Evaluation& e) {
  copy_strided(e.out(), e.in(0), 0, broadcast_strides(e.in(0).type.shape, e.out().type.shape));
}

std::vector<Var> expand_gradient(const Backward& g) {
  return {sum_to(g.dy(), g.in(0).shape())};
}

// tile

Result<std::vector<TensorType>> infer_tile(const Call& call) {
  const ir::Shape& x = call.shape(0);
  PLIMSOLL_TRY(const ir::Ints repeats, required_integers(call.attributes(), "repeats", x.rank()));
  ir::Ints dims;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t repeat = repeats[static_cast<std::size_t>(axis)];
    const auto dim = checked_multiply(x[axis], repeat);
    if (repeat < 0 || !dim)
      return bad_input("cannot repeat an extent of {} {} times", x[axis], repeat);
    dims.push_back(*dim);
  }
  PLIMSOLL_TRY(const ir::Shape shape, ir::Shape::make(dims));
  return plain(call.type(0).dtype, shape);
}

void evaluate_tile(const Evaluation& e) {
  const ir::Shape& x = e.in(0).type.shape;
  const Index strides = x.strides();
  for_each_element(e.out().type.shape, [&](std::int64_t i, Index index) {
    for (int axis = 0; axis < x.rank(); ++axis) index[static_cast<std::size_t>(axis)] %= x[axis];
    e.out().copy_element(i, e.in(0), dot(index, strides, x.rank()));
  });
}

// Axis by axis: [before, repeats, extent * after] summed over the repeats. Never more than three
// axes, so the rank of x may be the largest.
std::vector<Var> tile_gradient(const Backward& g) {
  const ir::Ints repeats = g.attributes.integers("repeats");
  const ir::Shape x = g.in(0).shape();
  Var sum = g.dy();
  ir::Shape shape = sum.shape();
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t repeat = repeats[static_cast<std::size_t>(axis)];
    if (repeat == 1) continue;
    shape[axis] = x[axis];
    const std::int64_t before = shape.elements(0, axis);
    const std::int64_t after = shape.elements(axis, shape.rank());
    sum = reshape(reduce_sum(reshape(sum, {before, repeat, after}), {1}), shape);
  }
  return {sum};
}

// triangle

Result<std::vector<TensorType>> infer_triangle(const Call& call) {
  if (call.shape(0).rank() < 2) {
    return bad_input("input {} has no last two axes", ir::to_string(call.shape(0)));
  }
  return plain(call.type(0).dtype, call.shape(0));
}

void evaluate_triangle(const Evaluation& e) {
  const bool upper = e.attributes.integer("upper") != 0;
  const std::int64_t diagonal = e.attributes.integer("diagonal");
  const auto rank = static_cast<std::size_t>(e.in(0).type.shape.rank());
  for_each_element(e.out().type.shape, [&](std::int64_t i, const Index& index) {
    const std::int64_t above = index[rank - 1] - index[rank - 2];
    if (upper ? above >= diagonal : above <= diagonal) e.out().copy_element(i, e.in(0), i);
  });
}

std::vector<Var> triangle_gradient(const Backward& g) {
  return {g.builder.call1("triangle", {g.dy()}, g.attributes.given())};
}

// reorder

Result<std::vector<TensorType>> infer_reorder(const Call& call) {
  const ir::Attribute* given = call.attributes().find("layout");
  const std::string text = given != nullptr ? std::get<std::string>(*given) : "";
  const auto layout = ir::parse_layout(text);
  if (!layout || !ir::fits(*layout, call.shape(0))) {
    return bad_input("layout '{}' does not fit {}", text, ir::to_string(call.shape(0)));
  }
  return std::vector{TensorType{call.type(0).dtype, call.shape(0), *layout}};
}

std::vector<View> reorder_views(const Call& call, std::span<const TensorType> outputs) {
  ir::Ints own(static_cast<std::size_t>(outputs[0].shape.rank()));
  std::iota(own.begin(), own.end(), 0);
  return same_bytes(call.type(0), outputs[0], own);
}

std::vector<Var> reorder_gradient(const Backward& g) {
  return {reorder(g.dy(), g.in(0).type().layout)};
}

OpDefinition shaping_definition(std::string_view name, InferRule infer, GradientRule gradient,
                                EvaluateRule evaluate) {
  return moving_definition(name, 1, infer, Gradient(gradient), evaluate);
}

}  // namespace

std::vector<OpDefinition> shaping_definitions() {
  OpDefinition reshape_definition =
      shaping_definition("reshape", infer_reshape, reshape_gradient, evaluate_copy)
          .having({attribute::integers("shape")});
  reshape_definition.views = reshape_views;
  reshape_definition.cost = no_cost;
  reshape_definition.recompute = Recompute::kFree;
  OpDefinition triangle_definition =
      shaping_definition("triangle", infer_triangle, triangle_gradient, evaluate_triangle)
          .having({attribute::integer("upper", 0), attribute::integer("diagonal", 0)});
  triangle_definition.in_place = InPlace::over(0);
  OpDefinition reorder_definition =
      shaping_definition("reorder", infer_reorder, reorder_gradient, evaluate_copy)
          .having({attribute::text("layout")});
  // It takes any layout and makes the one it names.
  reorder_definition.layout = LayoutRule::kAny;
  reorder_definition.views = reorder_views;
  OpDefinition transpose_definition =
      shaping_definition("transpose", infer_transpose, transpose_gradient, evaluate_transpose)
          .having({attribute::integers("perm")});
  transpose_definition.views = transpose_views;
  return {
      reshape_definition,
      transpose_definition,
      shaping_definition("expand", infer_expand, expand_gradient, evaluate_expand)
          .having({attribute::integers("shape")}),
      shaping_definition("tile", infer_tile, tile_gradient, evaluate_tile)
          .having({attribute::integers("repeats")}),
      triangle_definition,
      reorder_definition,
  };
}

}  // namespace plimsoll::ops
