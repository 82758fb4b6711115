#include "plimsoll/memory/page_map.h"

#include <gtest/gtest.h>

#include <unordered_map>

#include "plimsoll/base/random.h"

namespace plimsoll::memory {
namespace {

constexpr std::uint64_t kBase = std::uint64_t{1} << 45;

TEST(PageMap, FindsWhatIsRecordedAndNothingElse) {
  PageMap pages;
  pages.record(kBase + 512, 7);
  EXPECT_EQ(pages.find(kBase + 512), 7u);
  EXPECT_EQ(pages.find(kBase), kNoBlock);
  EXPECT_EQ(pages.find(kBase + 1024), kNoBlock);
  EXPECT_EQ(pages.find(~std::uint64_t{0}), kNoBlock);
  EXPECT_EQ(pages.erase(12345), kNoBlock);
  EXPECT_EQ(pages.erase(kBase + 512), 7u);
  EXPECT_EQ(pages.erase(kBase + 512), kNoBlock);
}

TEST(PageMap, HoldsAWholePageOfSmallBlocks) {
  PageMap pages;
  for (std::uint32_t i = 0; i < 4096; ++i) pages.record(kBase + i * 512, i + 1);
  for (std::uint32_t i = 0; i < 4096; ++i) EXPECT_EQ(pages.find(kBase + i * 512), i + 1);
  for (std::uint32_t i = 0; i < 4096; i += 3) EXPECT_EQ(pages.erase(kBase + i * 512), i + 1);
  for (std::uint32_t i = 0; i < 4096; ++i) {
    EXPECT_EQ(pages.find(kBase + i * 512), i % 3 == 0 ? kNoBlock : i + 1);
  }
}

TEST(PageMap, AgreesWithAHashTable) {
  constexpr std::uint64_t kSeed = 11;
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  PageMap pages;
  std::unordered_map<std::uint64_t, BlockIndex> known;
  for (BlockIndex turn = 1; turn < 100000; ++turn) {
    const std::uint64_t at = kBase + static_cast<std::uint64_t>(random.below(3 * 64)) * 512 * 61;
    const auto found = known.find(at);
    ASSERT_EQ(pages.find(at), found == known.end() ? kNoBlock : found->second);
    if (found == known.end()) {
      pages.record(at, turn);
      known[at] = turn;
    } else {
      ASSERT_EQ(pages.erase(at), found->second);
      known.erase(found);
    }
  }
}

TEST(PageMap, KnowsTheWindowOfEveryPage) {
  PageMap pages;
  pages.set_window(kBase, 4 * kPage, 9);
  EXPECT_EQ(pages.window(kBase + 4 * kPage - 1), 9u);
  EXPECT_EQ(pages.window(kBase + 4 * kPage), kNoWindow);
  pages.clear_window(kBase, 4 * kPage);
  EXPECT_EQ(pages.window(kBase), kNoWindow);
}

TEST(PageMap, GivesTheTableOfAClearedPageToAnotherOne) {
  PageMap pages;
  for (std::uint64_t page = 0; page < 3; ++page) {
    const std::uint64_t at = kBase + page * static_cast<std::uint64_t>(kPage);
    for (std::uint32_t i = 0; i < 64; ++i) {
      EXPECT_EQ(pages.find(at + i * 512), kNoBlock);
      pages.record(at + i * 512, i + 1);
    }
    for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(pages.erase(at + i * 512), i + 1);
    pages.clear_window(at, kPage);
  }
}

}  // namespace
}  // namespace plimsoll::memory
