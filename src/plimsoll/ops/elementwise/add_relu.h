// relu(a + b) in one pass: the end of every residual block. Its gradient reads only the result's
// sign, and is the same for both operands.
#pragma once

#include "plimsoll/ops/builder.h"

namespace plimsoll::ops {

Var add_relu(Var a, Var b);

}  // namespace plimsoll::ops
