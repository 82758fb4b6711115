#include "plimsoll/base/checksum64.h"

#include <bit>
#include <cstring>

namespace plimsoll {
namespace {

constexpr std::uint64_t kPrimes[] = {0x9e3779b185ebca87ULL, 0xc2b2ae3d27d4eb4fULL,
                                     0x165667b19e3779f9ULL, 0x85ebca77c2b2ae63ULL,
                                     0x27d4eb2f165667c5ULL};

template <typename T>
T word_at(const std::byte* bytes) {
  T out;
  std::memcpy(&out, bytes, sizeof(T));
  return out;
}
std::uint64_t round_of(std::uint64_t lane, std::uint64_t word) {
  return std::rotl(lane + word * kPrimes[1], 31) * kPrimes[0];
}
std::uint64_t merged(std::uint64_t hash, std::uint64_t lane) {
  return (hash ^ round_of(0, lane)) * kPrimes[0] + kPrimes[3];
}

}  // namespace

std::uint64_t checksum64(std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t hash = kPrimes[4];
  if (left >= 32) {
    std::uint64_t lanes[4] = {kPrimes[0] + kPrimes[1], kPrimes[1], 0, 0 - kPrimes[0]};
    for (; left >= 32; at += 32, left -= 32)
      for (std::size_t i = 0; i < 4; ++i)
        lanes[i] = round_of(lanes[i], word_at<std::uint64_t>(at + 8 * i));
    hash = std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) +
           std::rotl(lanes[3], 18);
    for (const std::uint64_t lane : lanes) hash = merged(hash, lane);
  }
  hash += bytes.size();
  for (; left >= 8; at += 8, left -= 8) {
    hash ^= round_of(0, word_at<std::uint64_t>(at));
    hash = std::rotl(hash, 27) * kPrimes[0] + kPrimes[3];
  }
  if (left >= 4) {
    hash ^= word_at<std::uint32_t>(at) * kPrimes[0];
    hash = std::rotl(hash, 23) * kPrimes[1] + kPrimes[2];
    at += 4;
    left -= 4;
  }
  for (; left > 0; ++at, --left) {
    hash ^= static_cast<std::uint64_t>(*at) * kPrimes[4];
    hash = std::rotl(hash, 11) * kPrimes[0];
  }
  hash = (hash ^ (hash >> 33)) * kPrimes[1];
  hash = (hash ^ (hash >> 29)) * kPrimes[2];
  return hash ^ (hash >> 32);
}

}  // namespace plimsoll
