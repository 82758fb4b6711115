// Operators that move elements without looking at them.
#include <algorithm>
#include <limits>
#include <numeric>

#include "plimsoll/base/checked.h"
#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"

namespace plimsoll::model::onnx {
namespace {

// The list in input i where the operator set has it there, else the attribute.
Result<ir::Ints> list_of(OperatorCall& call, int i, std::string_view name, bool as_input) {
  if (as_input && call.has(i)) return call.known_integers(i, name);
  return call.integers(name);
}

Status reshape(OperatorCall& call) {
  PLIMSOLL_TRY(ir::Ints shape, list_of(call, 1, "shape", call.version() >= 5));
  const ir::Shape& from = call.shape(0);
  const bool allow_zero = call.integer("allowzero", 0) != 0;
  std::int64_t known = 1;
  int open = -1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !allow_zero) {
      if (static_cast<int>(i) >= from.rank())
        return bad_input("its shape copies dimension {}, which x has not", i);
      shape[i] = from[static_cast<int>(i)];
    }
    if (shape[i] == -1) {
      if (open >= 0) return bad_input("its shape leaves two dimensions open");
      open = static_cast<int>(i);
      continue;
    }
    const auto product = checked_multiply(known, shape[i]);
    if (shape[i] < 0 || !product)
      return bad_input("its shape has an impossible dimension {}", shape[i]);
    known = *product;
  }
  if (open >= 0) {
    const std::int64_t elements = from.elements();
    if (known == 0 ? elements != 0 : elements % known != 0) {
      return bad_input("{} elements do not divide into the shape asked for", elements);
    }
    shape[static_cast<std::size_t>(open)] = known == 0 ? 0 : elements / known;
  }
  if (shape == dims_of(from)) return call.done(call.input(0));
  return call.done(reshape_to(call.in(0), shape));
}

Status flatten(OperatorCall& call) {
  const int rank = call.rank(0);
  const std::int64_t axis = call.integer("axis", 1);
  if (axis < -rank || axis > rank)
    return bad_input("axis {} is outside a tensor of rank {}", axis, rank);
  const int at = static_cast<int>(axis < 0 ? axis + rank : axis);
  return call.done(
      reshape_to(call.in(0), {call.shape(0).elements(0, at), call.shape(0).elements(at, rank)}));
}

Status squeeze(OperatorCall& call) {
  const ir::Shape& from = call.shape(0);
  PLIMSOLL_TRY(const ir::Ints given, list_of(call, 1, "axes", call.version() >= 13));
  PLIMSOLL_TRY(ir::Ints axes, normal_axes(given, from.rank()));
  ir::Ints shape;
  for (int axis = 0; axis < from.rank(); ++axis) {
    const bool named = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (named && from[axis] != 1)
      return bad_input("dimension {} is {}, only 1 can go", axis, from[axis]);
    if (named || (axes.empty() && from[axis] == 1)) continue;
    shape.push_back(from[axis]);
  }
  return call.done(reshape_to(call.in(0), shape));
}

Status unsqueeze(OperatorCall& call) {
  const ir::Shape& from = call.shape(0);
  PLIMSOLL_TRY(const ir::Ints given, list_of(call, 1, "axes", call.version() >= 13));
  if (given.size() + static_cast<std::size_t>(from.rank()) > ir::kMaxRank) {
    return bad_input("makes a tensor of rank {}, at most {} are supported",
                     given.size() + static_cast<std::size_t>(from.rank()), ir::kMaxRank);
  }
  const int rank = from.rank() + static_cast<int>(given.size());
  PLIMSOLL_TRY(const ir::Ints axes, normal_axes(given, rank));
  ir::Ints shape;
  int next = 0;
  for (int axis = 0; axis < rank; ++axis) {
    shape.push_back(std::find(axes.begin(), axes.end(), axis) != axes.end() ? 1 : from[next++]);
  }
  return call.done(reshape_to(call.in(0), shape));
}

Status transpose(OperatorCall& call) {
  ir::Ints perm = call.integers("perm");
  if (!call.has_attribute("perm")) {
    perm = range(0, call.rank(0));
    std::reverse(perm.begin(), perm.end());
  }
  if (static_cast<int>(perm.size()) == call.rank(0) && std::is_sorted(perm.begin(), perm.end())) {
    PLIMSOLL_TRY(const ir::Ints checked, normal_axes(perm, call.rank(0)));
    return call.done(call.input(0));
  }
  for (std::int64_t& axis : perm) {
    if (axis < 0) axis += call.rank(0);
  }
  return call.done(call.builder().call1("transpose", {call.in(0)}, {{"perm", perm}}));
}

Status expand(OperatorCall& call) {
  PLIMSOLL_TRY(const ir::Ints dims, call.known_integers(1, "shape"));
  PLIMSOLL_TRY(const ir::Shape wanted, ir::Shape::make(dims));
  const auto shape = ir::broadcast(call.shape(0), wanted);
  if (!shape)
    return bad_input("{} does not broadcast to {}", ir::to_string(call.shape(0)),
                     ir::to_string(wanted));
  if (*shape == call.shape(0)) return call.done(call.input(0));
  return call.done(expand_to(call.in(0), dims_of(*shape)));
}

struct Cut {
  std::int64_t start;
  std::int64_t end;
};

// ONNX counts negative places from the end and clamps; ours are normalised.
Cut normal_cut(std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t n) {
  if (start < 0) start += n;
  if (end < 0) end += n;
  if (step > 0) return {std::clamp<std::int64_t>(start, 0, n), std::clamp<std::int64_t>(end, 0, n)};
  const std::int64_t last = std::max<std::int64_t>(n - 1, 0);
  // A start before the first element leaves nothing when walking back.
  if (start < 0) return {0, 0};
  return {std::min(start, last), std::clamp<std::int64_t>(end, -1, last)};
}

Status slice(OperatorCall& call) {
  const bool inputs = call.version() >= 10;
  PLIMSOLL_TRY(const ir::Ints starts, list_of(call, 1, "starts", inputs));
  PLIMSOLL_TRY(const ir::Ints ends, list_of(call, 2, "ends", inputs));
  PLIMSOLL_TRY(ir::Ints axes, list_of(call, 3, "axes", inputs));
  PLIMSOLL_TRY(ir::Ints steps, list_of(call, 4, "steps", inputs));
  const ir::Shape& from = call.shape(0);
  if (axes.empty()) axes = range(0, static_cast<std::int64_t>(starts.size()));
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size()) {
    return bad_input("starts, ends, axes and steps have different lengths");
  }
  ir::Ints all_starts(static_cast<std::size_t>(from.rank()), 0);
  ir::Ints all_ends = dims_of(from);
  ir::Ints all_steps(all_starts.size(), 1);
  bool whole = true;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    PLIMSOLL_TRY(const int axis, normal_axis_of(axes[i], from.rank()));
    if (steps[i] == 0) return bad_input("a step of 0 makes no sense");
    // Beyond the extent in either direction a step is the same as the extent.
    const std::int64_t n = std::max<std::int64_t>(from[axis], 1);
    const std::int64_t step = std::clamp<std::int64_t>(steps[i], -n, n);
    const Cut cut = normal_cut(starts[i], ends[i], step, from[axis]);
    const auto at = static_cast<std::size_t>(axis);
    all_starts[at] = cut.start;
    all_ends[at] = cut.end;
    all_steps[at] = step;
    whole = whole && step == 1 && cut.start == 0 && cut.end == from[axis];
  }
  if (whole) return call.done(call.input(0));
  return call.done(call.builder().call1(
      "slice", {call.in(0)}, {{"starts", all_starts}, {"ends", all_ends}, {"steps", all_steps}}));
}

// Of a list that a run makes, the file says how long it must be: room beyond that is left out, and
// more in it is too much.
Status fit_to_found(OperatorCall& call, int axis, ir::Ints& sizes) {
  const std::span<const Found> found = call.importer().all_found();
  const std::int64_t sum = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  const std::int64_t room = call.shape(0)[axis];
  // Constants are folded in a graph of their own.
  const bool folds = &call.builder() != &call.importer().builder();
  if (found.empty() || sum == room || folds) return {};
  const Var x = call.in(0);
  PLIMSOLL_TRY(const auto axes, bounded_axes(call.builder().graph(), found));
  const BoundedAxis& bounded = axes[x.id().index()];
  if (bounded.axis != axis) return {};
  if (sum > room)
    return bad_input("the file wants {} of what NonZero finds; there is room for {}", sum, room);
  PLIMSOLL_RETURN_IF_ERROR(call.importer().limit(static_cast<std::size_t>(bounded.origin), sum));
  sizes.push_back(room - sum);
  return {};
}

Status split(OperatorCall& call) {
  PLIMSOLL_TRY(const int axis, normal_axis_of(call.integer("axis", 0), call.rank(0)));
  const std::int64_t n = call.shape(0)[axis];
  PLIMSOLL_TRY(ir::Ints sizes, list_of(call, 1, "split", call.version() >= 13));
  if (sizes.empty()) {
    const std::int64_t parts =
        std::max<std::int64_t>(call.integer("num_outputs", call.outputs()), 1);
    if (parts > std::max<std::int64_t>(n, 1) || parts > 65536)
      return bad_input("{} parts of {} elements", parts, n);
    const std::int64_t size = ceil_div(n, parts);
    sizes.assign(static_cast<std::size_t>(parts), size);
    sizes.back() = n - size * (parts - 1);
    if (sizes.back() < 0) return bad_input("{} elements do not divide into {} parts", n, parts);
  }
  if (static_cast<int>(sizes.size()) < call.outputs()) {
    return bad_input("has {} outputs, its sizes make {}", call.outputs(), sizes.size());
  }
  PLIMSOLL_RETURN_IF_ERROR(fit_to_found(call, axis, sizes));
  const auto parts =
      call.builder().call("split", {call.in(0)}, {{"axis", std::int64_t{axis}}, {"sizes", sizes}});
  for (std::size_t i = 0; i < parts.size() && static_cast<int>(i) < call.outputs(); ++i)
    call.out(static_cast<int>(i), parts[i]);
  return {};
}

Status concat(OperatorCall& call) {
  const std::int64_t axis = call.integer("axis", 1);
  if (call.inputs() == 1) {
    PLIMSOLL_TRY(const int checked, normal_axis_of(axis, call.rank(0)));
    (void)checked;
    return call.done(call.input(0));
  }
  return call.done(call.builder().call1("concat", call.all_inputs(), {{"axis", axis}}));
}

Status tile(OperatorCall& call) {
  PLIMSOLL_TRY(const ir::Ints repeats, list_of(call, 1, "repeats", true));
  return call.done(call.builder().call1("tile", {call.in(0)}, {{"repeats", repeats}}));
}

Status pad(OperatorCall& call) {
  const bool inputs = call.version() >= 11;
  PLIMSOLL_TRY(ir::Ints pads, list_of(call, 1, "pads", inputs));
  if (!inputs && pads.empty()) pads = call.integers("paddings");
  const int rank = call.rank(0);
  ir::Ints axes = range(0, rank);
  if (call.has(3)) {
    PLIMSOLL_TRY(axes, call.known_integers(3, "axes"));
  }
  if (pads.size() != axes.size() * 2)
    return bad_input("has {} pads for {} axes", pads.size(), axes.size());
  ir::Ints all(static_cast<std::size_t>(rank) * 2, 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    PLIMSOLL_TRY(const int axis, normal_axis_of(axes[i], rank));
    all[static_cast<std::size_t>(axis)] = pads[i];
    all[static_cast<std::size_t>(axis + rank)] = pads[axes.size() + i];
  }
  double value = call.real("value", 0);
  if (inputs && call.has(2)) {
    PLIMSOLL_TRY(value, call.known_real(2, "the value", 0));
  }
  if (std::all_of(all.begin(), all.end(), [](std::int64_t n) { return n == 0; }))
    return call.done(call.input(0));
  return call.done(call.builder().call1(
      "pad", {call.in(0)},
      {{"pads", all}, {"value", value}, {"mode", call.text("mode", "constant")}}));
}

Status depth_to_space(OperatorCall& call) {
  return call.done(call.builder().call1(
      "depth_to_space", {call.in(0)},
      {{"block", call.integer("blocksize", 0)}, {"mode", call.text("mode", "DCR")}}));
}

Status space_to_depth(OperatorCall& call) {
  return call.done(call.builder().call1(
      "space_to_depth", {call.in(0)},
      {{"block", call.integer("blocksize", 0)}, {"mode", call.text("mode", "DCR")}}));
}

Status trilu(OperatorCall& call) {
  PLIMSOLL_TRY(const std::int64_t diagonal, call.known_integer(1, "k", 0));
  return call.done(call.builder().call1(
      "triangle", {call.in(0)}, {{"upper", call.integer("upper", 1)}, {"diagonal", diagonal}}));
}

Status center_crop_pad(OperatorCall& call) {
  PLIMSOLL_TRY(const ir::Ints wanted, call.known_integers(1, "shape"));
  const ir::Shape& from = call.shape(0);
  PLIMSOLL_TRY(ir::Ints axes,
               normal_axes(call.integers("axes", range(0, from.rank())), from.rank()));
  // normal_axes sorts; the sizes belong to the axes as given.
  axes = call.integers("axes", axes);
  if (wanted.size() != axes.size())
    return bad_input("has {} sizes for {} axes", wanted.size(), axes.size());
  Var x = call.in(0);
  ir::Ints pads(static_cast<std::size_t>(from.rank()) * 2, 0);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int axis = static_cast<int>(axes[i] < 0 ? axes[i] + from.rank() : axes[i]);
    const std::int64_t less = from[axis] - wanted[i];
    if (wanted[i] < 0) return bad_input("a size of {} makes no sense", wanted[i]);
    if (less > 0) x = slice_axis(x, axis, less / 2, less / 2 + wanted[i]);
    if (less < 0) {
      pads[static_cast<std::size_t>(axis)] = -less / 2;
      pads[static_cast<std::size_t>(axis + from.rank())] = -less - (-less / 2);
    }
  }
  const bool padded = std::any_of(pads.begin(), pads.end(), [](std::int64_t n) { return n != 0; });
  if (padded) x = call.builder().call1("pad", {x}, {{"pads", pads}});
  return call.done(x);
}

}  // namespace

std::vector<Operator> shaping_operators() {
  return {
      {"Reshape", reshape, "allowzero shape"},
      {"Flatten", flatten, "axis"},
      {"Squeeze", squeeze, "axes"},
      {"Unsqueeze", unsqueeze, "axes"},
      same("transpose", transpose),
      {"Expand", expand},
      {"Slice", slice, "axes ends starts"},
      {"Split", split, "axis num_outputs split"},
      same("concat", concat),
      {"Tile", tile},
      {"Pad", pad, "mode paddings pads value"},
      {"DepthToSpace", depth_to_space, "blocksize mode"},
      {"SpaceToDepth", space_to_depth, "blocksize mode"},
      {"Trilu", trilu, "upper"},
      {"CenterCropPad", center_crop_pad, "axes"},
  };
}

}  // namespace plimsoll::model::onnx
