// One bit for every element: what the gradients of relu and clip need to know of a map.
//
//   relu_grad(dy, y)  =  masked(dy, positive_mask(y))        bit by bit
//   clip_grad(dy, x)  =  masked(dy, inside_mask(x))
//
// A mask is an ordinary value of 1/32 of the bytes, so that it can be kept instead of the map
// (rewrite/keep_masks.h); it has the map's shape and layout.
#pragma once

#include "plimsoll/ops/var.h"

namespace plimsoll::ops {

// dy where the bit is set, else 0.
Var masked(Var dy, Var mask);

}  // namespace plimsoll::ops
