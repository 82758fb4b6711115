// One bit for a value: where the gradient needs only "was it positive", or a dropout mask.
//
// Bit i of the mask is bit i % 8 of byte i / 8; bits past the end are zero. A map of fp32 shrinks
// 32 times. Lossless for its purpose: relu's gradient is the incoming gradient where the bit is
// set, and +0, -0 and NaN count as not positive, as relu's own comparison has it. Vectorised; about
// as fast as memory can be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace plimsoll::codec {

constexpr std::size_t mask_bytes(std::size_t count) {
  return count / 8 + (count % 8 != 0);
}

// out.size() == mask_bytes(values.size()).
void encode_positive(std::span<const float> values, std::span<std::uint8_t> out);
void encode_nonzero(std::span<const std::uint8_t> flags, std::span<std::uint8_t> out);
// Bytes of 0 and 1 again.
void decode_flags(std::span<const std::uint8_t> mask, std::span<std::uint8_t> flags);
// out[i] = bit i ? values[i] : 0. In place is fine.
void select_by_mask(std::span<const float> values, std::span<const std::uint8_t> mask,
                    std::span<float> out);

}  // namespace plimsoll::codec
