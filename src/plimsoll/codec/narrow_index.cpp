#include "plimsoll/codec/narrow_index.h"

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
  if (indices.empty()) return true;
  const std::size_t words = indices.size() / kWord;
  std::uint64_t seen = 0;
  for (std::size_t w = 0; w < words; ++w) {
    std::uint64_t word;
    std::memcpy(&word, indices.data() + w * kWord, kWord);
    seen |= word;
    word = squeeze<kBits>(word);
    std::memcpy(out.data() + w * kBits, &word, kBits);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, indices.data() + words * kWord, indices.size() % kWord);
  seen |= rest;
  rest = squeeze<kBits>(rest);
  std::memcpy(out.data() + words * kBits, &rest, out.size() - words * kBits);
  return (seen & ~stretch<kBits>(~std::uint64_t{0})) == 0;
}

template <int kBits>
void decode_narrow(std::span<const std::uint8_t> bytes, std::span<std::uint8_t> out) {
  PLIMSOLL_CHECK(bytes.size() == narrow_bytes<kBits>(out.size()));
  if (out.empty()) return;
  const std::size_t words = out.size() / kWord;
  for (std::size_t w = 0; w < words; ++w) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + w * kBits, kBits);
    word = stretch<kBits>(word);
    std::memcpy(out.data() + w * kWord, &word, kWord);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, bytes.data() + words * kBits, bytes.size() - words * kBits);
  rest = stretch<kBits>(rest);
  std::memcpy(out.data() + words * kWord, &rest, out.size() % kWord);
}

template bool encode_narrow<2>(std::span<const std::uint8_t>, std::span<std::uint8_t>);
template bool encode_narrow<4>(std::span<const std::uint8_t>, std::span<std::uint8_t>);
template void decode_narrow<2>(std::span<const std::uint8_t>, std::span<std::uint8_t>);
template void decode_narrow<4>(std::span<const std::uint8_t>, std::span<std::uint8_t>);

}  // namespace plimsoll::codec
