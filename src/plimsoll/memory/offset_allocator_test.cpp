// One contract, every offset allocator.
#include "plimsoll/memory/offset_allocator.h"

#include <gtest/gtest.h>

#include <map>

#include "plimsoll/base/random.h"

namespace plimsoll::memory {
namespace {

template <typename A>
class OffsetAllocatorContract : public ::testing::Test {};

using Allocators = ::testing::Types<BumpAllocator, TlsfAllocator, BuddyAllocator, BestFitAllocator,
                                    ExactCache<TlsfAllocator>, ExactCache<BestFitAllocator>>;
TYPED_TEST_SUITE(OffsetAllocatorContract, Allocators);

TYPED_TEST(OffsetAllocatorContract, LiveRangesAreAlignedAndNeverOverlap) {
  constexpr std::uint64_t kSeed = 11;
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  TypeParam allocator(64_MiB);
  std::map<std::int64_t, std::int64_t> live;
  for (int turn = 0; turn < 20000; ++turn) {
    if (random.chance(0.55)) {
      const std::int64_t size = random.below(std::int64_t{1} << random.between(1, 22));
      const auto offset = allocator.allocate(Bytes(size));
      if (!offset) continue;
      ASSERT_EQ(offset->value % kGranule, 0);
      const std::int64_t end = offset->value + std::max<std::int64_t>(size, 1);
      ASSERT_LE(end, allocator.capacity().value);
      const auto next = live.lower_bound(offset->value);
      ASSERT_TRUE(next == live.end() || next->first >= end);
      ASSERT_TRUE(next == live.begin() || std::prev(next)->second <= offset->value);
      live[offset->value] = end;
    } else if (!live.empty()) {
      const auto gone =
          std::next(live.begin(), random.below(static_cast<std::int64_t>(live.size())));
      allocator.free(Offset(gone->first));
      live.erase(gone);
    }
  }
  for (const auto& [offset, end] : live) allocator.free(Offset(offset));
  EXPECT_EQ(allocator.in_use(), 0_bytes);
  EXPECT_TRUE(allocator.allocate(64_MiB)) << "everything must join again";
}

TYPED_TEST(OffsetAllocatorContract, RefusesWhatDoesNotFitAndGoesOn) {
  TypeParam allocator(1_MiB);
  EXPECT_FALSE(allocator.allocate(1_MiB + 1_bytes));
  EXPECT_FALSE(allocator.allocate(Bytes(-1)));
  EXPECT_FALSE(allocator.allocate(Bytes(std::int64_t{1} << 62)));
  const auto all = allocator.allocate(1_MiB);
  ASSERT_TRUE(all);
  EXPECT_FALSE(allocator.allocate(1_bytes));
  allocator.free(*all);
  EXPECT_TRUE(allocator.allocate(512_bytes));
}

TYPED_TEST(OffsetAllocatorContract, HandlesZeroAndVeryLargeSizes) {
  TypeParam allocator(Bytes(std::int64_t{1} << 42));
  const auto zero = allocator.allocate(0_bytes);
  const auto large = allocator.allocate(Bytes(std::int64_t{1} << 40));
  ASSERT_TRUE(zero && large);
  EXPECT_EQ(allocator.in_use(), Bytes(512 + (std::int64_t{1} << 40)));
  EXPECT_GE(allocator.high_water(), Bytes(512 + (std::int64_t{1} << 40)));
  allocator.free(*large);
  allocator.free(*zero);
  EXPECT_EQ(allocator.in_use(), 0_bytes);
}

TYPED_TEST(OffsetAllocatorContract, EndsTheProgramOnADoubleFree) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  TypeParam allocator(1_MiB);
  const auto keeper = allocator.allocate(512_bytes);
  const auto offset = allocator.allocate(512_bytes);
  allocator.free(*offset);
  EXPECT_DEATH(allocator.free(*offset), "not live");
  allocator.free(*keeper);
}

}  // namespace
}  // namespace plimsoll::memory
