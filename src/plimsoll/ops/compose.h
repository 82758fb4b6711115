// Short spellings for gradient rules and decompositions, which join many small operators: each gives
// its argument back unchanged where the operator would do nothing, so derived graphs stay small.
#pragma once

#include "plimsoll/ops/binary.h"

namespace plimsoll::ops {

// An operator of one input and no attributes.
Var apply(std::string_view op, Var x);
// reduce_sum with the axes kept as extents of 1.
Var sum_over(Var x, const ir::Ints& axes);
Var with_shape(Var x, const ir::Shape& shape);
Var permuted(Var x, const ir::Ints& perm);
Var spread(Var x, const ir::Shape& shape);
Var cast_to(Var x, ir::DType dtype);
// As fp32 when the dtype is narrower.
Var widened(Var x);
// [begin, end) of one axis.
Var part(Var x, int axis, std::int64_t begin, std::int64_t end);
Var joined(std::vector<Var> parts, int axis);
// The sum of two adjoints, either of which may be absent.
Var plus(Var a, Var b);
// A vector of channels [C] as [1,C,1,...] of this rank.
Var along_channels(Var x, int rank);
// Every axis but the channels': 0,2,3,...
ir::Ints all_but_channels(int rank);

}  // namespace plimsoll::ops
