// The allocator's parts, each by itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "footprint.h"
#include "kernel.h"
#include "machine_limits.h"
#include "magazine.h"
#include "pool.h"
#include "size_class.h"
#include "text.h"

namespace plimsoll::heap {
namespace {

TEST(SizeClass, RoundsUpByAtMostANinth) {
  for (std::size_t bytes = 1; bytes <= kSmallLimit; ++bytes) {
    const unsigned size_class = class_of(bytes);
    ASSERT_LT(size_class, kClasses);
    ASSERT_GE(block_bytes(size_class), bytes);
    if (size_class > 1) {
      ASSERT_LT(block_bytes(size_class - 1), bytes);
    }
    if (bytes > kDirectLimit) {
      ASSERT_LE(block_bytes(size_class) - bytes, bytes / 8);
    }
  }
}

TEST(SizeClass, KeepsEveryPowerOfTwoThatDividesTheSize) {
  for (std::size_t alignment = 16; alignment <= kSmallLimit; alignment *= 2) {
    for (std::size_t bytes = alignment; bytes <= kSmallLimit; bytes += alignment) {
      ASSERT_EQ(block_bytes(class_of(bytes)) % alignment, 0u) << bytes << " at " << alignment;
    }
  }
}

TEST(Magazine, IsUsedOnceHalfAndUntilLessThanAnEighthAreFreedForOthers) {
  Magazine magazine;
  magazine.freed = 1000;
  magazine.note_refill(Magazine::kWindow - 1, 5);
  EXPECT_FALSE(magazine.is_exchanged());  // nothing was allocated before
  magazine.note_refill(1, 5);
  EXPECT_FALSE(magazine.is_exchanged());  // one too few
  magazine.freed = Magazine::kWindow / 2 - 1;
  magazine.note_refill(Magazine::kWindow, 5);
  EXPECT_FALSE(magazine.is_exchanged());
  magazine.freed = Magazine::kWindow / 2;
  magazine.note_refill(Magazine::kLongWindow, 5);
  EXPECT_TRUE(magazine.is_exchanged());
  magazine.freed = Magazine::kLongWindow / 8;
  magazine.note_refill(Magazine::kLongWindow, 5);
  EXPECT_TRUE(magazine.is_exchanged());
  magazine.freed = Magazine::kLongWindow / 8 - 1;
  magazine.note_refill(1, 5);
  EXPECT_FALSE(magazine.is_exchanged());
}

TEST(Magazine, HoldsWhatThirtyTwoKibibytesAreAndNoMoreThanItsPlaces) {
  EXPECT_EQ(kMagazineBlocks[class_of(16)], Magazine::kMost);
  EXPECT_EQ(kMagazineBlocks[class_of(1024)], 32u);
  EXPECT_EQ(kMagazineBlocks[class_of(16000)], 2u);
  EXPECT_EQ(kMagazineBlocks[class_of(20000)], 0u);  // one would go home with each free
}

// A block on a list is known whatever follows it; data, zero and another block's mark are not taken
// for its own.
TEST(Marks, AreRecognisedAndNothingElseIs) {
  constexpr std::size_t kBytes = 48;
  alignas(64) static std::uint64_t memory[512];
  const auto at = [&](std::size_t i) {
    return reinterpret_cast<std::uintptr_t>(memory) + i * kBytes;
  };
  for (std::size_t i = 0; i + 1 < sizeof memory / kBytes; ++i) {
    for (const std::uintptr_t next : {at(i + 1), at(0), std::uintptr_t{0}}) {
      set_next(at(i), next);
      EXPECT_EQ(next_of(at(i)), next);
      EXPECT_TRUE(is_freed(at(i)));
      set_next(at(i + 1), next);
      words_of(at(i))[1] = words_of(at(i + 1))[1];  // copied from another block
      EXPECT_FALSE(is_freed(at(i)));
    }
    for (const std::uint64_t word : {std::uint64_t{0}, std::uint64_t{at(i)}, ~std::uint64_t{0}}) {
      words_of(at(i))[1] = word;
      EXPECT_FALSE(is_freed(at(i)));
    }
    set_next(at(i), 0);
    clear_mark(at(i));
    EXPECT_FALSE(is_freed(at(i)));
  }
}

TEST(Footprint, KeepsASixteenthOfTheRecentPeak) {
  Footprint footprint;
  constexpr std::size_t kMiB = 1 << 20;
  footprint.at_time(10 * Footprint::kWindowNs);
  footprint.allocated(1600 * kMiB);
  footprint.freed(1000 * kMiB);
  footprint.cache_grew(1000 * kMiB);
  EXPECT_EQ(footprint.bound(), 1100 * kMiB);  // 1600 + 100 - 600
  EXPECT_EQ(footprint.excess(), 0u);
  footprint.at_time(11 * Footprint::kWindowNs);
  EXPECT_EQ(footprint.excess(), 0u);  // the peak is a second old
  footprint.at_time(12 * Footprint::kWindowNs);
  EXPECT_EQ(footprint.bound(), 600 * kMiB / 16);
  EXPECT_EQ(footprint.excess(), 1000 * kMiB - 600 * kMiB / 16);
}

// What lived until now was in use, however long ago the allocator was called last.
TEST(Footprint, KeepsWhatLivedThroughAPause) {
  Footprint footprint;
  constexpr std::size_t kMiB = 1 << 20;
  footprint.allocated(1600 * kMiB);
  footprint.at_time(10 * Footprint::kWindowNs);
  footprint.freed(1600 * kMiB);
  footprint.cache_grew(1600 * kMiB);
  footprint.at_time(20 * Footprint::kWindowNs);
  EXPECT_EQ(footprint.bound(), 1700 * kMiB);
  footprint.at_time(23 * Footprint::kWindowNs);
  EXPECT_EQ(footprint.bound(), Footprint::kFloor);
}

TEST(Footprint, KeepsEightMebibytesOfASmallProgram) {
  Footprint footprint;
  footprint.allocated(1 << 20);
  EXPECT_EQ(footprint.bound(), Footprint::kFloor);
}

TEST(Footprint, StaysBelowTheLimitOfACgroup) {
  Footprint footprint;
  footprint.limit_to(std::size_t{1} << 30);
  footprint.allocated(std::size_t{930} << 20);
  EXPECT_EQ(footprint.bound(), std::size_t{30} << 20);  // 960 - 930; a sixteenth would be 58
  footprint.allocated(std::size_t{100} << 20);
  EXPECT_EQ(footprint.bound(), 0u);
}

// Some kernels unmap the target before they refuse: what was there, nothing then, is no hole.
TEST(Kernel, ARefusedMoveLeavesTheTargetCommitted) {
  constexpr std::size_t kBytes = 2 * kHugePage;
  for (const bool unmapped : {false, true}) {
    auto* from = static_cast<char*>(reserve_addresses(kBytes, kHugePage));
    auto* to = static_cast<unsigned char*>(reserve_addresses(kBytes, kHugePage));
    ASSERT_TRUE(from != nullptr && to != nullptr && commit(from, kBytes) && commit(to, kBytes));
    std::memset(from, 1, kBytes);
    std::memset(to, 2, kBytes);
    release_addresses(from, kHugePage);  // a source that does not begin with a mapping is refused
    if (unmapped) release_addresses(to, kBytes);
    EXPECT_FALSE(move_pages(from, to, kBytes));
    EXPECT_EQ(std::count(to, to + kBytes, 0), static_cast<std::ptrdiff_t>(kBytes));
    std::memset(to, 3, kBytes);
    EXPECT_EQ(std::count(from + kHugePage, from + kBytes, 1),
              static_cast<std::ptrdiff_t>(kHugePage));
    release_addresses(from + kHugePage, kHugePage);
    release_addresses(to, kBytes);
  }
}

TEST(Limits, ReadCgroupAndNodeFiles) {
  EXPECT_EQ(limit_in("max\n"), SIZE_MAX);
  EXPECT_EQ(limit_in("1073741824\n"), std::size_t{1} << 30);
  EXPECT_EQ(highest_node_in("0\n"), 0u);
  EXPECT_EQ(highest_node_in("0-3\n"), 3u);
  EXPECT_EQ(highest_node_in("0-1,4-12\n"), 12u);
}

TEST(Text, WritesNumbersAndSizes) {
  Text text;
  text << std::uint64_t{0} << " " << std::uint64_t{1234567} << " ";
  text.size(1536) << " ";
  text.size(std::uint64_t{5} << 30);
  EXPECT_STREQ(text.c_str(), "0 1234567 1.5 KiB 5.0 GiB");
}

}  // namespace
}  // namespace plimsoll::heap
