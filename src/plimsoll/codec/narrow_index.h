// Indices that are small by nature (which of the 2×2 or 3×3 window won in a max pool) in 4 or 8
// bits.
//
// Lossless or refused: encoding returns false when an index does not fit, and the caller keeps the
// original. Index i of the nibble form is the low half of byte i / 2 for even i, the high half for
// odd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace plimsoll::codec {

constexpr std::size_t nibble_bytes(std::size_t count) {
  return count / 2 + count % 2;
}

bool encode_nibbles(std::span<const std::int32_t> indices, std::span<std::uint8_t> out);
void decode_nibbles(std::span<const std::uint8_t> nibbles, std::span<std::int32_t> out);
bool encode_bytes(std::span<const std::int32_t> indices, std::span<std::uint8_t> out);
void decode_bytes(std::span<const std::uint8_t> bytes, std::span<std::int32_t> out);

}  // namespace plimsoll::codec
