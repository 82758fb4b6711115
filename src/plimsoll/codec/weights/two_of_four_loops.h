// Rows of 2:4 times a vector, for whatever vectors the machine has (Highway's dynamic dispatch).
// With AVX-512, 32 weights are a permutation of 32 numbers and 16 multiplications; nothing is
// decoded.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plimsoll/codec/weights/weight_codec.h"

namespace plimsoll::codec {

// `count` weights, a multiple of 8, from a whole byte of places on; places are right.
struct PairRow {
  const std::uint8_t* places;
  const std::uint8_t* values;
  std::size_t count;
};
// Of fp32, fp16 and bf16.
float pairs_dot(WeightKind kind, const PairRow& row, const float* in);
// out += scale x row
void pairs_axpy(WeightKind kind, const PairRow& row, float scale, float* out);

}  // namespace plimsoll::codec
