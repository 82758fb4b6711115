// Many elements become one: sums, means, products, extremes; the running sum; and the sum of
// squares that clipping by the global norm wants.
//
//   reduce_sum, reduce_mean   gradient: dy expanded (and divided); reads nothing
//   reduce_max, reduce_min    reads x and y; elements that share the extreme share dy evenly
//   reduce_prod               reads x; right with zeros too (the product of the others is built
//   from
//                             the product of the nonzero ones and the count of zeros)
//   cumsum                    the running sum the other way; reads nothing
//   sum_squares               2 x dy; reads x
// An empty sum is 0, an empty product 1, an empty mean NaN (0 for integers); an empty extreme is
// refused. Sums are taken in double precision here; a kernel may use fp32 for narrower types.
#pragma once

#include "plimsoll/ops/operator_function.h"

namespace plimsoll::ops {

Var reduce_sum(Var x, const ir::Ints& axes, bool keepdims = false);
Var reduce_mean(Var x, const ir::Ints& axes, bool keepdims = false);
Var reduce_max(Var x, const ir::Ints& axes, bool keepdims = false);
Var reduce_min(Var x, const ir::Ints& axes, bool keepdims = false);
Var reduce_prod(Var x, const ir::Ints& axes, bool keepdims = false);
// An adjoint summed back to the shape its operand had before broadcasting.
Var sum_to(Var adjoint, ir::Shape shape);
// Over all axes: a scalar.
Var sum(Var x);
Var mean(Var x);

// Exclusive: element i is not in its own sum. Reverse: from the end.
Var cumsum(Var x, int axis, bool exclusive = false, bool reverse = false);
// A scalar of fp32 (fp64 for fp64).
PLIMSOLL_OPERATOR_OF_ONE(sum_squares)

}  // namespace plimsoll::ops
