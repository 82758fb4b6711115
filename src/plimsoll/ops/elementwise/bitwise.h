// Operators on the bits of integers, with numpy's broadcasting. Nothing flows back.
//
// A shift by less than 0 or by the width or more gives 0; right shifts of signed integers keep the
// sign.
#pragma once

#include "plimsoll/ops/builder.h"

namespace plimsoll::ops {

Var bit_and(Var a, Var b);
Var bit_or(Var a, Var b);
Var bit_xor(Var a, Var b);
Var bit_not(Var x);
Var bit_shift_left(Var a, Var amount);
Var bit_shift_right(Var a, Var amount);

}  // namespace plimsoll::ops
