// What gradient rules and decompositions of large operators say often, over the plain functions of
// shaping.h, reduction.h and cast.h.
#pragma once

#include "plimsoll/ops/elementwise/binary.h"
#include "plimsoll/ops/elementwise/cast.h"
#include "plimsoll/ops/elementwise/comparison.h"
#include "plimsoll/ops/elementwise/unary.h"
#include "plimsoll/ops/movement/shaping.h"
#include "plimsoll/ops/movement/slicing.h"
#include "plimsoll/ops/reduction/reduction.h"

namespace plimsoll::ops {

// reduce_sum with the axes kept as extents of 1; x itself when there are none.
Var sum_over(Var x, const ir::Ints& axes);
// As fp32 when the dtype is narrower.
Var widened(Var x);
// The sum of two adjoints, either of which may be absent.
Var plus(Var a, Var b);
// A vector of channels [C] as [1,C,1,...] of this rank.
Var along_channels(Var x, int rank);
// Every axis but the channels': 0,2,3,...
ir::Ints all_but_channels(int rank);

}  // namespace plimsoll::ops
