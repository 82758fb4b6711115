#include "plimsoll/base/content_hash.h"

#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace plimsoll {
namespace {

std::vector<std::byte> some_bytes(std::size_t count) {
  std::vector<std::byte> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<std::byte>(i * 37 + i / 256);
  return out;
}

TEST(ContentHash, DiffersForEveryChangedBitAndEveryLength) {
  std::set<std::uint64_t> seen;
  std::size_t made = 0;
  for (const std::size_t length : {0, 1, 7, 8, 31, 32, 33, 64, 100}) {
    std::vector<std::byte> bytes = some_bytes(length);
    seen.insert(content_hash(bytes));
    ++made;
    for (std::size_t bit = 0; bit < 8 * length; ++bit) {
      bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
      seen.insert(content_hash(bytes));
      ++made;
      bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    }
  }
  // Two bits at once, in words of one lane: what a weak step lets cancel.
  std::vector<std::byte> words = some_bytes(64);
  for (std::size_t first = 0; first < 64; ++first) {
    for (std::size_t second = 256; second < 320; ++second) {
      words[first / 8] ^= static_cast<std::byte>(1 << (first % 8));
      words[second / 8] ^= static_cast<std::byte>(1 << (second % 8));
      seen.insert(content_hash(words));
      ++made;
      words[first / 8] ^= static_cast<std::byte>(1 << (first % 8));
      words[second / 8] ^= static_cast<std::byte>(1 << (second % 8));
    }
  }
  for (std::size_t zeros = 2; zeros < 200; ++zeros) {
    seen.insert(content_hash(std::vector<std::byte>(zeros)));
    ++made;
  }
  EXPECT_EQ(seen.size(), made);
}

TEST(ContentHash, SeesWhichPieceIsWhichAndReleasesEachOnce) {
  constexpr std::size_t kPiece = 16 << 20;
  std::vector<std::byte> bytes = some_bytes(kPiece + 100);
  std::size_t released = 0;
  const std::uint64_t whole =
      content_hash(bytes, [&](std::span<const std::byte> piece) { released += piece.size(); });
  EXPECT_EQ(released, bytes.size());
  std::swap(bytes[3], bytes[kPiece + 4]);
  EXPECT_NE(content_hash(bytes), whole);
}

TEST(ContentHash, IsTheSameOnEveryMachine) {
  // XXH64 of the length and of the XXH64 of the bytes, as the reference library says.
  EXPECT_EQ(hash_text(content_hash(some_bytes(1000))), "9dc8b41c71c489e4");
  EXPECT_EQ(hash_text(0xab), "00000000000000ab");
}

}  // namespace
}  // namespace plimsoll
