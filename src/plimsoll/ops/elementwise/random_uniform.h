// random_uniform: numbers between low and high, drawn by the hash of dropout (dropout_mask.h).
//
// Element i is low + (high - low) * (hash(seed, counter, i) >> 8) / 2^24. There is no state but the
// counter, a uint64 scalar that an `increment` counts up once a step. The numbers are never
// recomputed: other than with dropout, whose gradient reads the counter, nothing keeps the counter
// from being counted up before the backward pass. What is made of them (a mask) may be. Other
// distributions are made of it: Bernoulli by comparing, a normal one by Box and Muller
// (model/onnx/convert/convert_random.cpp).
#pragma once

#include "plimsoll/ops/builder.h"

namespace plimsoll::ops {

// low <= high, both finite; a float type.
Var random_uniform(Var counter, const ir::TensorType& type, double low, double high,
                   std::int64_t seed);

}  // namespace plimsoll::ops
