// Everything that moves elements without changing them, as copies of boxes.
//
// Slices, joins, transposes, expansions and changes of layout are one thing: the same box of
// elements in two tensors, each with its own start and strides. Slicing starts inside the source,
// concatenation inside the target, expansion has source strides of 0, a reversed slice negative
// ones. The functions below say which boxes an operator copies; a device only has to copy boxes.
// No tensor has blocks (all_unblocked), and none of the boxes is empty.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "plimsoll/kernels/node_site.h"
#include "plimsoll/kernels/strided_loop.h"

namespace plimsoll::kernels {

struct BoxCopy {
  StridedLoop loop;        // operand 0: the target, 1: the source
  std::int64_t to = 0;     // where the box begins in the target, in elements
  std::int64_t from = 0;   // and in the source
  std::size_t input = 0;   // of the node
  std::size_t output = 0;  // of the node
};

// The box of `shape` elements; the loop runs in the memory order `layout`.
inline BoxCopy box_copy(const ir::Shape& shape, const ir::Layout& layout, const Strides& to,
                        const Strides& from) {
  BoxCopy out;
  out.loop = make_strided_loop({ir::DType::kU8, shape, layout}, {to, from});
  return out;
}

inline BoxCopy reorder_box(const NodeSite& site) {
  return box_copy(site.out().shape, site.out().layout, strides_in_memory(site.out()),
                  strides_in_memory(site.in(0)));
}

// The input's strides along the axes of a transpose's result.
inline Strides transposed_strides(const NodeSite& site) {
  const Strides own = strides_in_memory(site.in(0));
  const ir::Ints perm = site.attributes().integers("perm");
  Strides out{};
  for (std::size_t axis = 0; axis < perm.size(); ++axis)
    out[axis] = own[static_cast<std::size_t>(perm[axis])];
  return out;
}
inline BoxCopy transpose_box(const NodeSite& site) {
  return box_copy(site.out().shape, site.out().layout, strides_in_memory(site.out()),
                  transposed_strides(site));
}

inline BoxCopy expand_box(const NodeSite& site) {
  return box_copy(site.out().shape, site.out().layout, strides_in_memory(site.out()),
                  broadcast_strides_in(site.in(0), site.out().shape));
}

// The result seen as [repeat, extent] per axis, the source standing still along the repeats; row
// by row. Axes that neither repeat nor have more than one element take no place; nothing when more
// than ir::kMaxRank are left.
inline std::optional<BoxCopy> tile_box(const NodeSite& site) {
  const ir::Shape& x = site.in(0).shape;
  const Strides own = strides_in_memory(site.in(0));
  const ir::Ints repeats = site.attributes().integers("repeats");
  ir::Ints extents;
  Strides from{};
  const auto add_axis = [&](std::int64_t extent, std::int64_t step) {
    if (extent <= 1) return;
    if (extents.size() < from.size()) from[extents.size()] = step;
    extents.push_back(extent);
  };
  for (int axis = 0; axis < x.rank(); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    add_axis(repeats[at], 0);
    add_axis(x[axis], own[at]);
  }
  if (extents.size() > from.size()) return std::nullopt;
  const ir::Shape shape(extents);
  return box_copy(shape, {}, shape.strides(), from);
}

// Both directions: the wide tensor [N, C, H b, W b] seen as [N, C, H, b, W, b], the deep one with
// its channels as [b, b, C] ("DCR") or [C, b, b] ("CRD"); row-major.
inline BoxCopy depth_to_space_box(const NodeSite& site, bool widens) {
  const ir::Shape& wide = widens ? site.out().shape : site.in(0).shape;
  const std::int64_t b = site.attributes().integer("block");
  const std::int64_t plane = wide[2] / b * (wide[3] / b);
  const bool block_first = site.attributes().text("mode") == "DCR";
  const std::int64_t channel = block_first ? plane : b * b * plane;
  const std::int64_t place = block_first ? wide[1] * plane : plane;
  const ir::Shape box{wide[0], wide[1], wide[2] / b, b, wide[3] / b, b};
  const Strides in_wide = box.strides();
  const Strides in_deep{wide[1] * b * b * plane, channel, wide[3] / b, b * place, 1, place};
  return box_copy(box, {}, widens ? in_wide : in_deep, widens ? in_deep : in_wide);
}

// Strides and start of a slice's elements inside their tensor.
struct SlicePlace {
  Strides strides{};
  std::int64_t start = 0;
};
inline SlicePlace slice_place(const NodeSite& site, const ir::TensorType& tensor) {
  const auto rank = static_cast<std::size_t>(tensor.shape.rank());
  const ir::Ints starts = site.attributes().integers("starts", ir::Ints(rank, 0));
  const ir::Ints steps = site.attributes().integers("steps", ir::Ints(rank, 1));
  SlicePlace out{strides_in_memory(tensor), 0};
  for (std::size_t axis = 0; axis < rank; ++axis) {
    out.start += starts[axis] * out.strides[axis];
    out.strides[axis] *= steps[axis];
  }
  return out;
}

inline BoxCopy slice_box(const NodeSite& site) {
  const SlicePlace place = slice_place(site, site.in(0));
  BoxCopy out =
      box_copy(site.out().shape, site.out().layout, strides_in_memory(site.out()), place.strides);
  out.from = place.start;
  return out;
}

// The update over the slice; the rest of the tensor is the first input's.
inline BoxCopy slice_assign_box(const NodeSite& site) {
  const SlicePlace place = slice_place(site, site.out());
  BoxCopy out =
      box_copy(site.in(1).shape, site.in(1).layout, place.strides, strides_in_memory(site.in(1)));
  out.to = place.start;
  out.input = 1;
  return out;
}

// What a constant pad keeps of its input (a negative pad cuts); nothing when that is nothing.
inline std::optional<BoxCopy> pad_box(const NodeSite& site) {
  const ir::Shape& x = site.in(0).shape;
  const ir::Ints pads = site.attributes().integers("pads");
  const Strides to = strides_in_memory(site.out());
  const Strides from = strides_in_memory(site.in(0));
  ir::Shape box = x;
  std::int64_t target = 0;
  std::int64_t source = 0;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    const std::int64_t before = pads[at];
    const std::int64_t after = pads[at + static_cast<std::size_t>(x.rank())];
    box[axis] = std::max<std::int64_t>(
        0, x[axis] + std::min<std::int64_t>(before, 0) + std::min<std::int64_t>(after, 0));
    target += std::max<std::int64_t>(before, 0) * to[at];
    source += std::max<std::int64_t>(-before, 0) * from[at];
  }
  if (box.elements() == 0) return std::nullopt;
  BoxCopy out = box_copy(box, site.out().layout, to, from);
  out.to = target;
  out.from = source;
  return out;
}

// One tensor and its parts along an axis: concat (joins) or split.
inline std::vector<BoxCopy> part_boxes(const NodeSite& site, bool joins) {
  const ir::TensorType& whole = joins ? site.out() : site.in(0);
  const Strides strides = strides_in_memory(whole);
  auto axis = static_cast<int>(site.attributes().integer("axis"));
  if (axis < 0) axis += whole.shape.rank();
  const std::int64_t step = strides[static_cast<std::size_t>(axis)];
  std::vector<BoxCopy> out;
  std::int64_t start = 0;
  for (int i = 0; i < (joins ? site.inputs() : site.outputs()); ++i) {
    const ir::TensorType& part = joins ? site.in(i) : site.out(i);
    if (part.shape.elements() == 0) continue;
    BoxCopy copy = joins ? box_copy(part.shape, whole.layout, strides, strides_in_memory(part))
                         : box_copy(part.shape, part.layout, strides_in_memory(part), strides);
    (joins ? copy.to : copy.from) = start * step;
    (joins ? copy.input : copy.output) = static_cast<std::size_t>(i);
    out.push_back(std::move(copy));
    start += part.shape[axis];
  }
  return out;
}

}  // namespace plimsoll::kernels
