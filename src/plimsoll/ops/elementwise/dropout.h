// dropout: zeroes a share of the elements and scales the rest by 1 / (1 - ratio).
//
// The counter is a uint64 scalar (a state that an `increment` counts up once a step); with the seed
// it names the mask (dropout_mask.h). The gradient is dropout itself on dy: it reads the counter
// and nothing else, so neither x nor a mask has to be kept.
#pragma once

#include "plimsoll/ops/builder.h"

namespace plimsoll::ops {

// 0 <= ratio < 1.
Var dropout(Var x, Var counter, double ratio, std::int64_t seed);

}  // namespace plimsoll::ops
