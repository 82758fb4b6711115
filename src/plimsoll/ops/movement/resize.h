// resize: another extent along every axis, by the nearest element or by linear interpolation.
//
// Each axis is a small sparse matrix: element i of the result looks at a place in x,
//   half_pixel          (i + 1/2) n / m - 1/2     (the default; n extent of x, m of y)
//   pytorch_half_pixel  the same, 0 when m is 1
//   asymmetric          i n / m
//   align_corners       i (n-1) / (m-1)
// and takes the nearest element ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil") or the
// two around it with weights; outside, the edge counts. The whole operator is the product over the
// axes, so it is linear: its gradient resize_grad is the transposed matrix, and that one's gradient
// is resize again. Neither reads x.
#pragma once

#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/definition/attribute_spec.h"

namespace plimsoll::ops {

struct Resize {
  std::string mode = "nearest";
  std::string coordinates = "half_pixel";
  std::string rounding = "round_prefer_floor";
};
Var resize(Var x, ir::Shape shape, const Resize& options = {});

// One row of an axis' matrix: two elements of x and their weights.
struct Tap {
  std::int64_t first = 0;
  std::int64_t second = 0;
  double weight = 0;  // of the second; the first has the rest
};
// The rows of an axis of n elements resized to m, by the options of a resize or resize_grad.
std::vector<Tap> taps_of(std::int64_t n, std::int64_t m, const AttributeReader& attributes);

}  // namespace plimsoll::ops
