// Walking over the elements of a shape, for the reference evaluations of operators that move data.
//
// Two forms of "where does output element (i0, i1, ...) come from" cover almost all of them:
//   strided    x[base + i0*s0 + i1*s1 + ...]      transpose, expand, slice
//   mapped     x[m0[i0], m1[i1], ...]             pad, tile, nearest resize: a table per axis; -1
//   in a
//                                                 table means "from nowhere": y keeps what it has
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plimsoll/ops/evaluation/array.h"

namespace plimsoll::ops {

using Index = std::array<std::int64_t, ir::kMaxRank>;

// body(position in row-major order, index along every axis)
template <typename Body>
void for_each_element(const ir::Shape& shape, Body body) {
  Index index{};
  const std::int64_t count = shape.elements();
  for (std::int64_t i = 0; i < count; ++i) {
    body(i, index);
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const auto place = static_cast<std::size_t>(axis);
      if (++index[place] < shape[axis]) break;
      index[place] = 0;
    }
  }
}

inline std::int64_t dot(const Index& index, const Index& strides, int rank) {
  std::int64_t out = 0;
  for (int axis = 0; axis < rank; ++axis) {
    out += index[static_cast<std::size_t>(axis)] * strides[static_cast<std::size_t>(axis)];
  }
  return out;
}

// body(position in y, position in x)
template <typename Body>
void for_each_strided(const ir::Shape& y, std::int64_t base, const Index& strides, Body body) {
  for_each_element(y, [&](std::int64_t i, const Index& index) {
    body(i, base + dot(index, strides, y.rank()));
  });
}

// body(line, position of its first element, stride) for every line of x along the axis.
template <typename Body>
void for_each_line(const ir::Shape& x, int axis, Body body) {
  if (x.elements() == 0) return;
  const std::int64_t inner = x.elements(axis + 1, x.rank());
  for (std::int64_t line = 0; line < x.elements() / x[axis]; ++line) {
    body(line, line / inner * inner * x[axis] + line % inner, inner);
  }
}

// Every element; y has as many as x.
inline void copy_all(Array& y, const Array& x) {
  y.reals = x.reals;
  y.integers = x.integers;
}
void copy_strided(Array& y, const Array& x, std::int64_t base, const Index& strides);

// One table per axis of y: the index along the same axis of x, or -1.
using AxisTables = std::vector<std::vector<std::int64_t>>;
void copy_mapped(Array& y, const Array& x, const AxisTables& tables);

}  // namespace plimsoll::ops
