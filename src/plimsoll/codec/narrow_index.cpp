#include "plimsoll/codec/narrow_index.h"

#include <algorithm>

#include "plimsoll/base/check.h"

namespace plimsoll::codec {
namespace {

bool all_below(std::span<const std::int32_t> indices, std::uint32_t limit) {
  std::uint32_t highest = 0;
  for (std::int32_t index : indices) highest = std::max(highest, static_cast<std::uint32_t>(index));
  return highest < limit;
}

}  // namespace

bool encode_nibbles(std::span<const std::int32_t> indices, std::span<std::uint8_t> out) {
  PLIMSOLL_CHECK(out.size() == nibble_bytes(indices.size()));
  if (!all_below(indices, 16)) return false;
  for (std::size_t i = 0; i + 1 < indices.size(); i += 2) {
    out[i / 2] = static_cast<std::uint8_t>(indices[i] | indices[i + 1] << 4);
  }
  if (indices.size() % 2 != 0) out.back() = static_cast<std::uint8_t>(indices.back());
  return true;
}

void decode_nibbles(std::span<const std::uint8_t> nibbles, std::span<std::int32_t> out) {
  PLIMSOLL_CHECK(nibbles.size() == nibble_bytes(out.size()));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = (nibbles[i / 2] >> (i % 2 * 4)) & 15;
}

bool encode_bytes(std::span<const std::int32_t> indices, std::span<std::uint8_t> out) {
  PLIMSOLL_CHECK(out.size() == indices.size());
  if (!all_below(indices, 256)) return false;
  for (std::size_t i = 0; i < indices.size(); ++i) out[i] = static_cast<std::uint8_t>(indices[i]);
  return true;
}

void decode_bytes(std::span<const std::uint8_t> bytes, std::span<std::int32_t> out) {
  PLIMSOLL_CHECK(bytes.size() == out.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = bytes[i];
}

}  // namespace plimsoll::codec
