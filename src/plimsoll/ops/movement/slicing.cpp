#include "plimsoll/ops/movement/slicing.h"

#include "plimsoll/base/checked.h"
#include "plimsoll/ops/definition/attribute_rules.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/elementwise/cast.h"
#include "plimsoll/ops/movement/element_walk.h"
#include "plimsoll/ops/movement/padding.h"

namespace plimsoll::ops {
namespace {

// How many elements start, start + step, ... lie before `end`; an error when not normalised.
Result<std::int64_t> slice_extent(std::int64_t n, std::int64_t start, std::int64_t end,
                                  std::int64_t step) {
  if (step == 0 || step == std::numeric_limits<std::int64_t>::min()) {
    return bad_input("a step of {} makes no sense", step);
  }
  const bool forward = step > 0;
  const std::int64_t lowest_end = forward ? 0 : -1;
  const std::int64_t highest = forward ? n : std::max<std::int64_t>(n - 1, 0);
  if (start < 0 || start > highest || end < lowest_end || end > highest) {
    return bad_input("range {} to {} step {} is outside an extent of {}", start, end, step, n);
  }
  if (n == 0) return 0;
  const std::int64_t distance = forward ? end - start : start - end;
  return distance <= 0 ? 0 : ceil_div(distance, forward ? step : -step);
}

struct SliceWindow {
  SliceRange range;
  ir::Shape shape;
};

Result<SliceWindow> window_of(const ir::Shape& x, const AttributeReader& attributes) {
  SliceWindow out;
  const int rank = x.rank();
  PLIMSOLL_TRY(out.range.starts, required_integers(attributes, "starts", rank));
  PLIMSOLL_TRY(out.range.ends, required_integers(attributes, "ends", rank));
  PLIMSOLL_TRY(out.range.steps, required_integers(attributes, "steps", rank));
  for (int axis = 0; axis < rank; ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    auto extent =
        slice_extent(x[axis], out.range.starts[at], out.range.ends[at], out.range.steps[at]);
    if (!extent) return forward(extent, fmt::format("axis {}", axis));
    out.shape.push_back(*extent);
  }
  return out;
}

Result<std::vector<TensorType>> infer_slice(const Call& call) {
  PLIMSOLL_TRY(const SliceWindow window, window_of(call.shape(0), call.attributes()));
  return std::vector{TensorType{call.type(0).dtype, window.shape, {}}};
}

Result<std::vector<TensorType>> infer_slice_assign(const Call& call) {
  PLIMSOLL_TRY(const SliceWindow window, window_of(call.shape(0), call.attributes()));
  const TensorType expected{call.type(0).dtype, window.shape, {}};
  if (call.type(1).dtype != expected.dtype || call.shape(1) != expected.shape) {
    return bad_input("the update is {}, the slice {}", ir::to_string(call.type(1)),
                     ir::to_string(expected));
  }
  return std::vector{TensorType{expected.dtype, call.shape(0), {}}};
}

// body(position in the slice, position in x)
template <typename Body>
void for_each_sliced(const ir::Shape& x, const AttributeReader& attributes, Body body) {
  const auto window = window_of(x, attributes);
  PLIMSOLL_CHECK(window.has_value());
  Index strides = x.strides();
  std::int64_t base = 0;
  for (std::size_t axis = 0; axis < window->range.starts.size(); ++axis) {
    if (window->shape[static_cast<int>(axis)] == 0) return;
    base += window->range.starts[axis] * strides[axis];
    // One element takes no step; a wild one must not overflow.
    strides[axis] *= window->shape[static_cast<int>(axis)] == 1 ? 1 : window->range.steps[axis];
  }
  for_each_strided(window->shape, base, strides, body);
}

void evaluate_slice(const Evaluation& e) {
  for_each_sliced(e.in(0).type.shape, e.attributes,
                  [&](std::int64_t i, std::int64_t at) { e.out().copy_element(i, e.in(0), at); });
}

void evaluate_slice_assign(const Evaluation& e) {
  copy_all(e.out(), e.in(0));
  for_each_sliced(e.in(0).type.shape, e.attributes,
                  [&](std::int64_t i, std::int64_t at) { e.out().copy_element(at, e.in(1), i); });
}

// One run of bytes: outer extents 1, one axis cut, inner axes whole; in row-major order only.
std::vector<View> slice_views(const Call& call, std::span<const TensorType> outputs) {
  const ir::Shape& x = call.shape(0);
  const ir::Shape& y = outputs[0].shape;
  const ir::Ints starts = call.attributes().integers("starts");
  const ir::Ints steps = call.attributes().integers("steps");
  if (y.elements() == 0 || !call.type(0).layout.is_row_major()) return {};
  int cut = x.rank() - 1;
  while (cut >= 0 && y[cut] == x[cut] && (steps[static_cast<std::size_t>(cut)] == 1 || x[cut] == 1))
    --cut;
  if (cut >= 0 && y[cut] > 1 && steps[static_cast<std::size_t>(cut)] != 1) return {};
  for (int axis = 0; axis < cut; ++axis) {
    if (y[axis] != 1) return {};
  }
  const auto strides = x.strides();
  std::int64_t first = 0;
  for (std::size_t axis = 0; axis < starts.size(); ++axis) first += starts[axis] * strides[axis];
  const std::int64_t bits = first * ir::bits(call.type(0).dtype);
  if (bits % 8 != 0) return {};
  return {View{.offset = Bytes(bits / 8)}};
}

bool all_ones(const ir::Ints& steps) {
  return std::all_of(steps.begin(), steps.end(), [](std::int64_t step) { return step == 1; });
}

SliceRange range_of(const AttributeReader& attributes) {
  return {attributes.integers("starts"), attributes.integers("ends"), attributes.integers("steps")};
}

std::vector<Var> slice_gradient(const Backward& g) {
  const SliceRange range = range_of(g.attributes);
  if (!all_ones(range.steps) || g.dy().shape().elements() == 0) {
    return {slice_assign(zeros_like(g.in(0)), g.dy(), range)};
  }
  ir::Ints pads = range.starts;
  for (std::size_t axis = 0; axis < range.ends.size(); ++axis) {
    pads.push_back(g.in(0).dim(static_cast<int>(axis)) - range.ends[axis]);
  }
  return {pad(g.dy(), pads)};
}

std::vector<Var> slice_assign_gradient(const Backward& g) {
  const SliceRange range = range_of(g.attributes);
  return {g.wants(0) ? slice_assign(g.dy(), zeros_like(g.in(1)), range) : Var(),
          g.wants(1) ? slice(g.dy(), range) : Var()};
}

// Reads and writes only the slice, when it lies in place; counts that.
Cost assign_cost(const Call& call, std::span<const TensorType>) {
  const double bytes = static_cast<double>(ir::bytes_of(call.type(1)).value);
  return {.operations = 0, .bytes_read = bytes, .bytes_written = bytes};
}

ir::Attributes attributes_of(SliceRange range) {
  if (range.steps.empty()) range.steps.assign(range.starts.size(), 1);
  return {{"starts", std::move(range.starts)},
          {"ends", std::move(range.ends)},
          {"steps", std::move(range.steps)}};
}

}  // namespace

Var slice(Var x, SliceRange range) {
  return x.builder().call1("slice", {x}, attributes_of(std::move(range)));
}

Var slice(Var x, int axis, std::int64_t start, std::int64_t end) {
  const auto normal = normal_axis(axis, x.rank());
  if (!normal) {
    x.builder().fail(fmt::format("slice: {}", normal.error().message));
    return x;
  }
  const auto at = static_cast<std::size_t>(*normal);
  const ir::Shape shape = x.shape();
  SliceRange range{
      ir::Ints(static_cast<std::size_t>(x.rank()), 0), ir::Ints(shape.begin(), shape.end()), {}};
  range.starts[at] = start;
  range.ends[at] = end;
  return slice(x, std::move(range));
}

Var slice_assign(Var x, Var update, SliceRange range) {
  return x.builder().call1("slice_assign", {x, update}, attributes_of(std::move(range)));
}

std::vector<OpDefinition> slicing_definitions() {
  return {
      {.name = "slice",
       .inputs = exactly(1),
       .outputs = exactly(1),
       .attributes = {attribute::integers("starts"), attribute::integers("ends"),
                      attribute::integers("steps")},
       .infer = infer_slice,
       .gradient = Gradient(slice_gradient),
       .in_place = InPlace::never(),
       .views = slice_views,
       .cost = bytes_cost,
       .recompute = Recompute::kCheap,
       .layout = LayoutRule::kChannels,
       .evaluate = evaluate_slice},
      {.name = "slice_assign",
       .inputs = exactly(2),
       .outputs = exactly(1),
       .attributes = {attribute::integers("starts"), attribute::integers("ends"),
                      attribute::integers("steps")},
       .infer = infer_slice_assign,
       .gradient = Gradient(slice_assign_gradient),
       .in_place = InPlace::over(0),
       .cost = assign_cost,
       .recompute = Recompute::kCheap,
       .layout = LayoutRule::kChannels,
       .evaluate = evaluate_slice_assign},
  };
}

}  // namespace plimsoll::ops
