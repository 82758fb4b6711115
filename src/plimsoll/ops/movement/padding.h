// pad: rows put around a tensor, or (negative) cut off.
//
// `pads` has the amounts before every axis, then those after every axis. Modes: "constant" (value),
// "edge" (the nearest element), "reflect" (mirrored at the edge element, which is not repeated),
// "wrap" (periodic). Amounts of reflect may exceed the extent: the mirror image repeats.
//
//   x = 1 2 3, pads [2,2]:  constant 0 0 1 2 3 0 0   edge 1 1 1 2 3 3 3
//                           reflect  3 2 1 2 3 2 1   wrap 2 3 1 2 3 1 2
// The gradient of constant padding is padding by the negative amounts; that of the others adds
// every copy to its origin (gather_grad along each axis). Both read nothing.
#pragma once

#include "plimsoll/ops/builder.h"

namespace plimsoll::ops {

Var pad(Var x, const ir::Ints& pads, double value = 0);
Var pad(Var x, const ir::Ints& pads, std::string_view mode);

}  // namespace plimsoll::ops
