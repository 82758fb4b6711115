// Loops over tensors that do not lie alike: broadcast operands, other orders of axes.
//
// A StridedLoop is the iteration space of an output with, for every operand, its step along each
// axis (0 where it is broadcast). Axes are put in the output's memory order and neighbours that
// step alike are joined, so adding a bias [C,1,1] to NCHW becomes [N*C... as few and as long loops
// as there can be:
//   y[8,64,56,56] + b[64,1,1]              extents 8, 64, 3136    steps of b 0, 1, 0
//   the same, channels last                extents 25088, 64      steps of b 0, 1
// The last axis is the row that an inner function runs over.
#pragma once

#include <array>
#include <vector>

#include "plimsoll/base/check.h"
#include "plimsoll/ir/tensor_type.h"

namespace plimsoll::kernels {

using Strides = std::array<std::int64_t, ir::kMaxRank>;

struct StridedLoop {
  std::vector<std::int64_t> extents;             // outermost first; at least one
  std::vector<std::vector<std::int64_t>> steps;  // [operand][axis], in elements

  std::int64_t row() const { return extents.back(); }
  std::int64_t rows() const {
    std::int64_t out = 1;
    for (std::size_t i = 0; i + 1 < extents.size(); ++i) out *= extents[i];
    return out;
  }
  std::int64_t row_step(std::size_t operand) const { return steps[operand].back(); }
  // Where element `first` of row number `index` of an operand lies.
  std::int64_t place(std::size_t operand, std::int64_t index, std::int64_t first) const {
    return row_offset(operand, index) + first * row_step(operand);
  }
  // Where row number `index` of an operand begins.
  std::int64_t row_offset(std::size_t operand, std::int64_t index) const {
    std::int64_t offset = 0;
    for (std::size_t i = extents.size() - 1; i-- > 0;) {
      offset += index % extents[i] * steps[operand][i];
      index /= extents[i];
    }
    return offset;
  }
};

// The axes of a tensor, outermost in memory first.
inline std::array<int, ir::kMaxRank> axes_in_memory(const ir::Shape& shape,
                                                    const ir::Layout& layout) {
  std::array<int, ir::kMaxRank> out{};
  for (int i = 0; i < shape.rank(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    out[at] = layout.is_row_major() ? i : layout.order[at];
  }
  return out;
}

// How far apart neighbours along each axis lie, in elements. The layout has no blocks.
inline Strides strides_in_memory(const ir::TensorType& type) {
  PLIMSOLL_CHECK(type.layout.block_count == 0, "{} has blocks", ir::to_string(type));
  const auto order = axes_in_memory(type.shape, type.layout);
  Strides strides{};
  std::int64_t stride = 1;
  for (int i = type.shape.rank() - 1; i >= 0; --i) {
    const int axis = order[static_cast<std::size_t>(i)];
    strides[static_cast<std::size_t>(axis)] = stride;
    stride *= type.shape[axis];
  }
  return strides;
}

// The loop over a shape in the memory order of `order` (a layout without blocks) with operands
// whose strides per axis of the shape are given.
inline StridedLoop make_strided_loop(const ir::TensorType& order,
                                     const std::vector<Strides>& strides) {
  StridedLoop loop;
  loop.steps.resize(strides.size());
  const auto axes = axes_in_memory(order.shape, order.layout);
  for (int i = 0; i < order.shape.rank(); ++i) {
    const auto axis = static_cast<std::size_t>(axes[static_cast<std::size_t>(i)]);
    const std::int64_t extent = order.shape[static_cast<int>(axis)];
    if (extent == 1) continue;
    // The axis before joins this one when a step of it is a whole run through this one, for
    // everybody.
    bool joins = !loop.extents.empty();
    for (std::size_t k = 0; joins && k < strides.size(); ++k)
      joins = loop.steps[k].back() == strides[k][axis] * extent;
    if (joins) {
      loop.extents.back() *= extent;
      for (std::size_t k = 0; k < strides.size(); ++k) loop.steps[k].back() = strides[k][axis];
    } else {
      loop.extents.push_back(extent);
      for (std::size_t k = 0; k < strides.size(); ++k) loop.steps[k].push_back(strides[k][axis]);
    }
  }
  if (loop.extents.empty()) {
    loop.extents.push_back(1);
    for (auto& steps : loop.steps) steps.push_back(1);
  }
  return loop;
}

// Strides of an operand seen as `out` by numpy's broadcasting: 0 along broadcast axes.
inline Strides broadcast_strides_in(const ir::TensorType& operand, const ir::Shape& out) {
  const Strides own = strides_in_memory(operand);
  Strides strides{};
  const int shift = out.rank() - operand.shape.rank();
  for (int axis = 0; axis < operand.shape.rank(); ++axis) {
    if (operand.shape[axis] != 1)
      strides[static_cast<std::size_t>(axis + shift)] = own[static_cast<std::size_t>(axis)];
  }
  return strides;
}

}  // namespace plimsoll::kernels
