// relu(a + b) in one pass: the end of every residual block. Its gradient reads only the result's
// sign, and is the same for both operands.
#pragma once

#include "plimsoll/ops/operator_function.h"

namespace plimsoll::ops {

PLIMSOLL_OPERATOR_OF_TWO(add_relu)

}  // namespace plimsoll::ops
