// Parts of a tensor: slice, slice_assign, concat, split.
//
// A slice is given per axis as start, end, step, normalised: for a positive step 0 <= start, end <=
// n; for a negative one 0 <= start < n and -1 <= end < n, where -1 is "through the first element".
// (Model files have other conventions; importers normalise.)
//
//   x [4,6]   starts [1,0] ends [3,6] steps [1,1]  ->  rows 1 and 2
// Here the result is one run of x's bytes, so it lies in x: a view. That is so when the outer
// extents of the result are 1, one axis is cut with step 1, and all inner axes are whole. A concat
// along an axis whose outer extents are 1 turns this round: its inputs may lie in its output. Views
// only say what is possible; a plan decides.
//
// Gradients read nothing: a slice's is a pad or an assignment into zeros, a concat's are slices, a
// split's a concat.
#pragma once

#include "plimsoll/ops/builder.h"

namespace plimsoll::ops {

struct SliceRange {
  ir::Ints starts;
  ir::Ints ends;
  ir::Ints steps;  // empty: all 1
};

Var slice(Var x, SliceRange range);
// [start, end) of one axis (may be negative, as an axis), all of the others.
Var slice(Var x, int axis, std::int64_t start, std::int64_t end);
// x with the slice replaced by `update`.
Var slice_assign(Var x, Var update, SliceRange range);
Var concat(const std::vector<Var>& xs, int axis);
// As many parts as sizes, which add up to the extent.
std::vector<Var> split(Var x, const ir::Ints& sizes, int axis);

}  // namespace plimsoll::ops
