// Operators on the bits of integers, with numpy's broadcasting. Nothing flows back.
//
// A shift by less than 0 or by the width or more gives 0; right shifts of signed integers keep the
// sign.
#pragma once

#include "plimsoll/ops/operator_function.h"

namespace plimsoll::ops {

PLIMSOLL_OPERATOR_OF_TWO(bit_and)
PLIMSOLL_OPERATOR_OF_TWO(bit_or)
PLIMSOLL_OPERATOR_OF_TWO(bit_xor)
PLIMSOLL_OPERATOR_OF_ONE(bit_not)
Var bit_shift_left(Var a, Var amount);
Var bit_shift_right(Var a, Var amount);

}  // namespace plimsoll::ops
