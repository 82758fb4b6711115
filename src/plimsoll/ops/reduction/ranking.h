// Which elements are largest: argmax, argmin, top_k.
//
// Indices are int64. Among equal elements the first wins, or the last one where `last` says so;
// top_k lists larger (or smaller) elements first and equal ones in the order of their places. A NaN
// counts as larger than everything, so that it is not lost.
//
// Nothing flows back through an index. The gradient of top_k's values puts them back at their
// indices: it reads the indices only.
#pragma once

#include "plimsoll/ops/builder.h"

namespace plimsoll::ops {

Var argmax(Var x, int axis, bool keepdims = false, bool last = false);
Var argmin(Var x, int axis, bool keepdims = false, bool last = false);

struct TopK {
  Var values;
  Var indices;
};
TopK top_k(Var x, std::int64_t k, int axis = -1, bool largest = true);

}  // namespace plimsoll::ops
