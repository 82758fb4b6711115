#include "plimsoll/trace/hash_index.h"

#include <gtest/gtest.h>

namespace plimsoll::trace {
namespace {

constexpr std::uint32_t kThings = 20000;

// x with mix64(x) == hash: each step of mix64 undone.
std::uint64_t unmixed(std::uint64_t hash) {
  const auto unshifted = [](std::uint64_t z, int by) {
    std::uint64_t x = z;
    for (int done = by; done < 64; done += by) x = z ^ (x >> by);
    return x;
  };
  hash = unshifted(hash, 31) * 0x319642b2d24d8ec3ULL;
  hash = unshifted(hash, 27) * 0x96de1b173f119089ULL;
  return unshifted(hash, 30);
}

// What a file would hold that knows where hashes begin: all of it meets in the first places.
std::uint64_t crafted(std::uint64_t salt, std::uint64_t thing) {
  return unmixed(thing << 32) ^ salt;
}

TEST(HashIndex, FindsEachOfThingsWhoseHashesAreAllEqual) {
  HashIndex index;
  for (std::uint32_t thing = 0; thing < 500; ++thing) index.add(42, thing);
  for (std::uint32_t thing = 0; thing < 500; ++thing)
    EXPECT_EQ(index.find(42, [&](std::uint32_t number) { return number == thing; }), thing);
  EXPECT_EQ(index.find(42, [](std::uint32_t) { return false; }), HashIndex::kNone);
  EXPECT_EQ(index.find(43, [](std::uint32_t) { return true; }), HashIndex::kNone);
}

TEST(HashIndex, CollisionsCanBeCraftedByWhoKnowsTheSalt) {
  HashIndex index;
  for (std::uint32_t thing = 0; thing < kThings; ++thing)
    index.add(HashIndex::mix(index.salt(), crafted(index.salt(), thing)), thing);
  EXPECT_GE(index.longest_walk(), kThings - 1);
}

TEST(HashIndex, CollisionsCraftedForAnotherSaltMeetNowhere) {
  HashIndex index;
  for (std::uint32_t thing = 0; thing < kThings; ++thing)
    index.add(HashIndex::mix(index.salt(), crafted(0, thing)), thing);
  EXPECT_LT(index.longest_walk(), 200U);  // 30 or so in a table that is half full
  EXPECT_NE(HashIndex().salt(), HashIndex().salt());
}

}  // namespace
}  // namespace plimsoll::trace
