// Indices that are small by nature (which place of a 2x2 or 3x3 window won in a max pool), held in
// bytes, in 2 or 4 bits each: 2-bit indices are below 4, 4-bit ones below 16.
//
// Index i lies in the bits from i % per * kBits of byte i / per, per = 8 / kBits; bits past the end
// are zero. Lossless or refused: encoding returns false when an index does not fit, and the caller
// keeps the original. Eight indices at a time in one 64-bit word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace plimsoll::codec {

template <int kBits>
constexpr std::size_t narrow_bytes(std::size_t count) {
  constexpr std::size_t kPer = 8 / kBits;
  return count / kPer + (count % kPer != 0);
}

// out.size() == narrow_bytes<kBits>(indices.size()); kBits is 2 or 4.
template <int kBits>
bool encode_narrow(std::span<const std::uint8_t> indices, std::span<std::uint8_t> out);
template <int kBits>
void decode_narrow(std::span<const std::uint8_t> bytes, std::span<std::uint8_t> out);

}  // namespace plimsoll::codec
