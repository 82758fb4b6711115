#include "plimsoll/base/content_hash.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "plimsoll/base/random.h"

namespace plimsoll {
namespace {

constexpr std::size_t kHashedPiece = 16 << 20;
constexpr std::array<std::uint64_t, 4> kOdd = {0x9e3779b97f4a7c15ULL, 0xd1342543de82ef95ULL,
                                               0xbf58476d1ce4e5b9ULL, 0x94d049bb133111ebULL};

std::uint64_t word_at(const std::byte* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}

std::uint64_t lane_step(std::uint64_t lane, std::uint64_t word, std::uint64_t odd) {
  const std::uint64_t mixed = (lane ^ word) * odd;
  return (mixed ^ (mixed >> 29)) * kOdd[3];
}

std::uint64_t hash_of_piece(std::span<const std::byte> piece) {
  std::array<std::uint64_t, 4> lanes = kOdd;
  const std::byte* at = piece.data();
  std::size_t left = piece.size();
  // Variables of their own: compilers keep an array in memory.
  auto [a, b, c, d] = lanes;
  for (; left >= 32; left -= 32, at += 32) {
    a = lane_step(a, word_at(at), kOdd[0]);
    b = lane_step(b, word_at(at + 8), kOdd[1]);
    c = lane_step(c, word_at(at + 16), kOdd[2]);
    d = lane_step(d, word_at(at + 24), kOdd[3]);
  }
  lanes = {a, b, c, d};
  // The rest, with its length, so that zeros at the end count.
  std::array<std::byte, 32> rest{};
  if (left > 0) std::memcpy(rest.data(), at, left);
  for (std::size_t lane = 0; lane < 4; ++lane)
    lanes[lane] = lane_step(lanes[lane], word_at(rest.data() + 8 * lane), kOdd[lane]);
  std::uint64_t out = mix64(piece.size());
  for (const std::uint64_t lane : lanes) out = mix64(out ^ lane) + kOdd[0];
  return out;
}

}  // namespace

std::uint64_t content_hash(std::span<const std::byte> bytes,
                           const std::function<void(std::span<const std::byte>)>& release) {
  std::uint64_t out = mix64(bytes.size() + kOdd[1]);
  for (std::size_t at = 0; at < bytes.size(); at += kHashedPiece) {
    const auto piece = bytes.subspan(at, std::min(kHashedPiece, bytes.size() - at));
    out = mix64(lane_step(out, hash_of_piece(piece), kOdd[2]));
    if (release) release(piece);
  }
  return out;
}

std::string hash_text(std::uint64_t hash) {
  return fmt::format("{:016x}", hash);
}

}  // namespace plimsoll
