// Encoded weights times a vector, for whatever vectors the machine has (Highway's dynamic
// dispatch). Each weight is the very float that decoding gives; only the order of sums differs.
//
// A row of so many values, a multiple of its block (block_weights.h):
//   dot    the sum of row x in
//   axpy   out += scale x row; of four rows at once, so that `out` is read and written once for all
//   whole  dot with vectors of whole numbers from -127 to 127 (activations rounded to int8, kept in
//          16 bits so that they need no widening): of int8 and q8_0, whose codes are multiplied and
//          added as integers. Four vectors at once, so that a row is widened once for all
#pragma once

#include <cstddef>
#include <cstdint>

namespace plimsoll::codec {

enum class RowForm : std::uint8_t {
  kFloat,
  kFloat16,
  kBfloat16,
  kFloat8,
  kInt8,
  kQ8_0,
  kQ4_0,
  kQ4K,
  kNf4
};

float vector_dot(RowForm form, const std::uint8_t* row, std::size_t count, const float* in);
void vector_axpy(RowForm form, const std::uint8_t* row, std::size_t count, float scale, float* out);
void vector_axpy4(RowForm form, const std::uint8_t* const* rows, std::size_t count,
                  const float* scales, float* out);
// out[v] = row x in[v * step ...]; a row of at most 131,072 values, which 32 bits hold the sum of.
void vector_dot_whole(RowForm form, const std::uint8_t* row, std::size_t count,
                      const std::int16_t* in, std::size_t step, std::size_t vectors, float* out);

}  // namespace plimsoll::codec
