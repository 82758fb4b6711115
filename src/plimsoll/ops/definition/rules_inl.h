// The inline part of rules.h.
#pragma once

#include <array>

namespace plimsoll::ops {

// Strides of `shape` seen as `out` (aligned at the last axis): 0 along broadcast axes.
inline std::array<std::int64_t, ir::kMaxRank> broadcast_strides(const ir::Shape& shape,
                                                                const ir::Shape& out) {
  std::array<std::int64_t, ir::kMaxRank> strides{};
  const auto own = shape.strides();
  const auto shift = static_cast<std::size_t>(out.rank() - shape.rank());
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    if (shape[axis] != 1) strides[at + shift] = own[at];
  }
  return strides;
}

template <typename Body>
void for_each_broadcast(const ir::Shape& out, const ir::Shape& a, const ir::Shape& b, Body body) {
  const auto stride_a = broadcast_strides(a, out);
  const auto stride_b = broadcast_strides(b, out);
  std::array<std::int64_t, ir::kMaxRank> index{};
  std::int64_t at_a = 0;
  std::int64_t at_b = 0;
  const std::int64_t count = out.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    body(i, at_a, at_b);
    for (int axis = out.rank() - 1; axis >= 0; --axis) {
      const auto place = static_cast<std::size_t>(axis);
      at_a += stride_a[place];
      at_b += stride_b[place];
      if (++index[place] < out[axis]) break;
      at_a -= stride_a[place] * out[axis];
      at_b -= stride_b[place] * out[axis];
      index[place] = 0;
    }
  }
}

}  // namespace plimsoll::ops
