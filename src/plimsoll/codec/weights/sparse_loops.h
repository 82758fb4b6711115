// Rows of 2:4 and of bitmask times a vector, for whatever vectors the machine has (Highway's
// dynamic dispatch). With AVX-512, 32 weights of 2:4 are a permutation of 32 numbers and 16
// multiplications; of bitmask, 16 weights are spread from a register. Nothing is decoded to memory.
// All are of fp32, fp16 and bf16.
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
float pairs_dot(WeightKind kind, const PairRow& row, const float* in);
// out += scale x row
void pairs_axpy(WeightKind kind, const PairRow& row, float scale, float* out);

// `count` weights, a multiple of 8: a bit each, and the values of those that are set, of which
// there are `values_left` at least.
struct MaskRow {
  const std::uint8_t* mask;
  const std::uint8_t* values;
  std::size_t values_left;
  std::size_t count;
};
// The values that were taken; nothing was done with any more.
struct MaskDot {
  float sum = 0;
  std::size_t used = 0;
};
MaskDot mask_dot(WeightKind kind, const MaskRow& row, const float* in);
std::size_t mask_axpy(WeightKind kind, const MaskRow& row, float scale, float* out);

}  // namespace plimsoll::codec
