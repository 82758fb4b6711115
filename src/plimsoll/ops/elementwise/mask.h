// One bit for every element: what the gradients of relu and clip need to know of an activation.
//
//   relu_grad(dy, y)  =  masked(dy, positive_mask(y))        bit by bit
//   clip_grad(dy, x)  =  masked(dy, inside_mask(x))
//
// A mask is an ordinary value of 1/32 of the bytes, so that it can be kept instead of the
// activation (rewrite/keep_masks.h); it has its shape and layout.
#pragma once

#include "plimsoll/ops/operator_function.h"

namespace plimsoll::ops {

// dy where the bit is set, else 0.
PLIMSOLL_OPERATOR_OF_TWO(masked)

}  // namespace plimsoll::ops
