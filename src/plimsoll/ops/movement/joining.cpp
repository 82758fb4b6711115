#include "plimsoll/base/checked.h"
#include "plimsoll/ops/definition/attribute_rules.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/elementwise/cast.h"
#include "plimsoll/ops/movement/slicing.h"

namespace plimsoll::ops {
namespace {

Result<std::vector<TensorType>> infer_concat(const Call& call) {
  PLIMSOLL_TRY(const std::int64_t given, required_integer(call.attributes(), "axis"));
  const ir::Shape& first = call.shape(0);
  PLIMSOLL_TRY(const int axis, normal_axis(given, first.rank()));
  ir::Shape out = first;
  for (int i = 1; i < call.size(); ++i) {
    if (!call.has(i)) return bad_input("input {} is missing", i);
    ir::Shape expected = call.shape(i);
    const auto extent =
        expected.rank() == first.rank() ? checked_add(out[axis], expected[axis]) : std::nullopt;
    if (extent) expected[axis] = first[axis];
    if (!extent || expected != first || call.type(i).dtype != call.type(0).dtype) {
      return bad_input("input 0 is {}, input {} is {}: they differ in more than axis {}",
                       ir::to_string(call.type(0)), i, ir::to_string(call.type(i)), axis);
    }
    out[axis] = *extent;
  }
  PLIMSOLL_TRY(out, ir::Shape::make(out.dims()));
  return std::vector{TensorType{call.type(0).dtype, out, {}}};
}

Result<std::vector<TensorType>> infer_split(const Call& call) {
  PLIMSOLL_TRY(const std::int64_t given, required_integer(call.attributes(), "axis"));
  PLIMSOLL_TRY(const ir::Ints sizes, required_integers(call.attributes(), "sizes"));
  const ir::Shape& x = call.shape(0);
  PLIMSOLL_TRY(const int axis, normal_axis(given, x.rank()));
  if (sizes.empty()) return bad_input("sizes are empty");
  std::vector<TensorType> out;
  std::int64_t rest = x[axis];
  for (const std::int64_t size : sizes) {
    if (size < 0 || size > rest)
      return bad_input("sizes do not add up to the extent of {}", x[axis]);
    rest -= size;
    TensorType part{call.type(0).dtype, x, {}};
    part.shape[axis] = size;
    out.push_back(part);
  }
  if (rest != 0) return bad_input("sizes leave {} of the extent of {}", rest, x[axis]);
  return out;
}

// body(position in the whole, position in the part) for a part that begins at `first` on the axis.
template <typename Body>
void for_each_in_part(const ir::Shape& whole, const ir::Shape& part, int axis, std::int64_t first,
                      Body body) {
  const std::int64_t inner = whole.elements(axis + 1, whole.rank());
  const std::int64_t run = part[axis] * inner;
  const std::int64_t outer = whole.elements(0, axis);
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < run; ++i) body((o * whole[axis] + first) * inner + i, o * run + i);
  }
}

void evaluate_concat(const Evaluation& e) {
  const int axis = verified_axis(e.attributes, e.out().type.shape);
  std::int64_t first = 0;
  for (const Array* part : e.inputs) {
    for_each_in_part(e.out().type.shape, part->type.shape, axis, first,
                     [&](std::int64_t i, std::int64_t j) { e.out().copy_element(i, *part, j); });
    first += part->type.shape[axis];
  }
}

void evaluate_split(const Evaluation& e) {
  const int axis = verified_axis(e.attributes, e.in(0).type.shape);
  std::int64_t first = 0;
  for (Array& part : e.outputs) {
    for_each_in_part(e.in(0).type.shape, part.type.shape, axis, first,
                     [&](std::int64_t i, std::int64_t j) { part.copy_element(j, e.in(0), i); });
    first += part.type.shape[axis];
  }
}

// Where each part lies in the whole, or nothing when the parts are not single runs of bytes: when
// the axis is not the outermost of more than one, or channels lie innermost.
std::vector<Bytes> part_offsets(const TensorType& type, int axis,
                                std::span<const std::int64_t> extents) {
  const ir::Shape& whole = type.shape;
  const ir::DType dtype = type.dtype;
  if (!type.layout.is_row_major() || whole.elements() == 0 || whole.elements(0, axis) != 1)
    return {};
  const std::int64_t inner = whole.elements(axis + 1, whole.rank());
  std::vector<Bytes> out;
  std::int64_t first = 0;
  for (const std::int64_t extent : extents) {
    const std::int64_t bits = first * inner * ir::bits(dtype);
    if (bits % 8 != 0) return {};
    out.push_back(Bytes(bits / 8));
    first += extent;
  }
  return out;
}

// The parts of a concat lie in its result, those of a split in its input.
template <bool kJoins>
std::vector<View> part_views(const Call& call, std::span<const TensorType> outputs) {
  const TensorType& whole = kJoins ? outputs[0] : call.type(0);
  const int axis = verified_axis(call.attributes(), whole.shape);
  const int parts = kJoins ? call.size() : static_cast<int>(outputs.size());
  ir::Ints extents;
  for (int i = 0; i < parts; ++i) {
    const TensorType& part = kJoins ? call.type(i) : outputs[static_cast<std::size_t>(i)];
    extents.push_back(part.shape[axis]);
  }
  std::vector<View> out;
  const auto offsets = part_offsets(whole, axis, extents);
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const int part = static_cast<int>(i);
    if (extents[i] > 0) out.push_back({kJoins ? 0 : part, kJoins ? part : 0, offsets[i], kJoins});
  }
  return out;
}

std::vector<Var> concat_gradient(const Backward& g) {
  const int axis = verified_axis(g.attributes, g.in(0).shape());
  std::vector<Var> out;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    const std::int64_t extent = g.inputs[i].dim(axis);
    out.push_back(g.wanted[i] ? slice(g.dy(), axis, first, first + extent) : Var());
    first += extent;
  }
  return out;
}

std::vector<Var> split_gradient(const Backward& g) {
  std::vector<Var> parts;
  for (std::size_t i = 0; i < g.outputs.size(); ++i) {
    parts.push_back(g.adjoints[i] ? g.adjoints[i] : zeros_like(g.outputs[i]));
  }
  return {concat(parts, verified_axis(g.attributes, g.in(0).shape()))};
}

}  // namespace

Var concat(const std::vector<Var>& xs, int axis) {
  return xs.front().builder().call1("concat", xs, {{"axis", std::int64_t{axis}}});
}

std::vector<Var> split(Var x, const ir::Ints& sizes, int axis) {
  std::vector<Var> out =
      x.builder().call("split", {x}, {{"axis", std::int64_t{axis}}, {"sizes", sizes}});
  // After an error there is one placeholder; callers may still take as many as they asked for.
  out.resize(sizes.size(), out.front());
  return out;
}

std::vector<OpDefinition> joining_definitions() {
  return {
      {.name = "concat",
       .inputs = at_least(1),
       .outputs = exactly(1),
       .attributes = {attribute::integer("axis")},
       .infer = infer_concat,
       .gradient = Gradient(concat_gradient),
       .in_place = InPlace::never(),
       .views = part_views<true>,
       .cost = bytes_cost,
       .recompute = Recompute::kCheap,
       .layout = LayoutRule::kChannels,
       .evaluate = evaluate_concat},
      {.name = "split",
       .inputs = exactly(1),
       .outputs = at_least(1),
       .attributes = {attribute::integer("axis"), attribute::integers("sizes")},
       .infer = infer_split,
       .gradient = Gradient(split_gradient),
       .in_place = InPlace::never(),
       .views = part_views<false>,
       .cost = bytes_cost,
       .recompute = Recompute::kCheap,
       .layout = LayoutRule::kChannels,
       .evaluate = evaluate_split},
  };
}

}  // namespace plimsoll::ops
