#include "plimsoll/codec/narrow_index.h"

#include <algorithm>
#include <cstring>

#include "plimsoll/base/check.h"

namespace plimsoll::codec {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

// Pairs of 8-bit fields become one of `bits` more, then pairs of those: 8 indices in kBits bytes.
template <int kBits>
std::uint64_t squeeze(std::uint64_t word) {
  if constexpr (kBits == 4) {
    word = (word | word >> 4) & 0x00ff00ff00ff00ffULL;
    word = (word | word >> 8) & 0x0000ffff0000ffffULL;
    return (word | word >> 16) & 0x00000000ffffffffULL;
  } else {
    word = (word | word >> 6) & 0x000f000f000f000fULL;
    word = (word | word >> 12) & 0x000000ff000000ffULL;
    return (word | word >> 24) & 0x000000000000ffffULL;
  }
}

template <int kBits>
std::uint64_t stretch(std::uint64_t word) {
  if constexpr (kBits == 4) {
    word = (word | word << 16) & 0x0000ffff0000ffffULL;
    word = (word | word << 8) & 0x00ff00ff00ff00ffULL;
    return (word | word << 4) & 0x0f0f0f0f0f0f0f0fULL;
  } else {
    word = (word | word << 24) & 0x000000ff000000ffULL;
    word = (word | word << 12) & 0x000f000f000f000fULL;
    return (word | word << 6) & 0x0303030303030303ULL;
  }
}

}  // namespace

template <int kBits>
bool encode_narrow(std::span<const std::uint8_t> indices, std::span<std::uint8_t> out) {
  PLIMSOLL_CHECK(out.size() == narrow_bytes<kBits>(indices.size()));
  std::uint8_t seen = 0;
  for (const std::uint8_t index : indices) seen |= index;
  if (seen >> kBits != 0) return false;
  for (std::size_t i = 0; i < indices.size(); i += kWord) {
    std::uint64_t word = 0;
    std::memcpy(&word, indices.data() + i, std::min(kWord, indices.size() - i));
    word = squeeze<kBits>(word);
    const std::size_t at = i * kBits / 8;
    std::memcpy(out.data() + at, &word, std::min<std::size_t>(kBits, out.size() - at));
  }
  return true;
}

template <int kBits>
void decode_narrow(std::span<const std::uint8_t> bytes, std::span<std::uint8_t> out) {
  PLIMSOLL_CHECK(bytes.size() == narrow_bytes<kBits>(out.size()));
  for (std::size_t i = 0; i < out.size(); i += kWord) {
    std::uint64_t word = 0;
    const std::size_t at = i * kBits / 8;
    std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(kBits, bytes.size() - at));
    word = stretch<kBits>(word);
    std::memcpy(out.data() + i, &word, std::min(kWord, out.size() - i));
  }
}

template bool encode_narrow<2>(std::span<const std::uint8_t>, std::span<std::uint8_t>);
template bool encode_narrow<4>(std::span<const std::uint8_t>, std::span<std::uint8_t>);
template void decode_narrow<2>(std::span<const std::uint8_t>, std::span<std::uint8_t>);
template void decode_narrow<4>(std::span<const std::uint8_t>, std::span<std::uint8_t>);

}  // namespace plimsoll::codec
