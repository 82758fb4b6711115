// One function per operator, for people who write models and for gradient rules.
//
//   Var y = relu(conv(x, w, bias, {.strides = {2, 2}, .pads = {3, 3, 3, 3}}));
//
// Families stand in headers of their own; this one includes them all.
#pragma once

#include "plimsoll/ops/binary.h"
