// cast: every element as the nearest one of another dtype; fill and iota: tensors made from
// nothing.
//
// A real becomes an integer by dropping its fraction and saturates at the ends of int64 before it
// wraps into a narrower one; a NaN becomes 0; bool and bit ask only whether it is zero. The
// gradient of a cast between floats is a cast back and reads nothing.
#pragma once

#include "plimsoll/ops/builder.h"

namespace plimsoll::ops {

Var cast(Var x, ir::DType to);
// cast_group: cast of so many tensors at once, each into a result of its own, for devices on which
// starting a kernel takes longer than casting a small tensor.
inline constexpr int kCastGroup = 16;
// The whole tensor is one number.
Var fill(Builder& builder, const ir::TensorType& type, double value);
Var zeros_like(Var x);
// start, start + step, ... along one axis, the same along all others.
Var iota(Builder& builder, const ir::TensorType& type, int axis, std::int64_t start = 0,
         std::int64_t step = 1);

}  // namespace plimsoll::ops
