#include "plimsoll/pack/exact/best_dives.h"

#include <gtest/gtest.h>

namespace plimsoll::pack {
namespace {

constexpr std::int32_t kSections = 100;
constexpr int kAsked = 200;

std::vector<BestDives::Item> items() {
  return {{{0, 10}, 10}, {{45, 55}, 20}, {{90, 100}, 30}};
}

// Two items lie, then both are taken back.
void dive(BestDives& dives, std::uint32_t a, std::int64_t at_a, std::uint32_t b,
          std::int64_t at_b) {
  dives.place(a, at_a);
  dives.place(b, at_b);
  dives.take_back(b);
  dives.take_back(a);
}

// How many of many guided dives would put item i at x first.
int advised(BestDives& dives, Random& random, std::uint32_t i, std::int64_t x) {
  int count = 0;
  for (int k = 0; k < kAsked; ++k) {
    dives.begin(true, random);
    count += dives.advise(i, x);
  }
  return count;
}

TEST(BestDives, AdviseWhatTheDiveThatGotFurthestHad) {
  BestDives dives(items(), kSections);
  Random random(1);
  dives.begin(false, random);
  dive(dives, 0, 5, 1, 7);
  dive(dives, 0, 6, 2, 9);  // the same dive gets further after going back
  dives.end();
  EXPECT_GT(advised(dives, random, 0, 6), kAsked / 2);
  EXPECT_GT(advised(dives, random, 2, 9), kAsked / 2);
  EXPECT_EQ(advised(dives, random, 0, 5), 0);
  EXPECT_EQ(advised(dives, random, 1, 7), 0);
}

TEST(BestDives, AreNotAskedInAWindowOfTime) {
  BestDives dives(items(), kSections);
  Random random(1);
  dives.begin(false, random);
  dive(dives, 0, 5, 1, 7);
  dives.end();
  EXPECT_LT(advised(dives, random, 1, 7), kAsked);
  int parted = 0;  // dives that leave one of the two to chance
  for (int k = 0; k < kAsked; ++k) {
    dives.begin(true, random);
    parted += dives.advise(0, 5) != dives.advise(1, 7);
  }
  EXPECT_GT(parted, 0);
}

TEST(BestDives, AreReplacedOnlyByThoseThatGetFurther) {
  BestDives dives(items(), kSections);
  Random random(1);
  dives.begin(false, random);
  dive(dives, 0, 1, 2, 1);
  dives.end();
  dives.begin(true, random);
  dive(dives, 0, 2, 1, 2);
  dives.end();
  EXPECT_GT(advised(dives, random, 2, 1), 0);
  dives.begin(true, random);
  dive(dives, 1, 3, 2, 3);
  dives.end();
  EXPECT_GT(advised(dives, random, 1, 3), 0);
  EXPECT_EQ(advised(dives, random, 0, 1), 0);
}

TEST(BestDives, AdviseNothingInAFreeDiveOrAfterClearing) {
  BestDives dives(items(), kSections);
  Random random(1);
  dives.begin(true, random);
  dive(dives, 0, 1, 1, 1);
  dives.end();
  dives.begin(false, random);
  EXPECT_FALSE(dives.advise(0, 1));
  dives.clear();
  EXPECT_EQ(advised(dives, random, 0, 1), 0);
}

}  // namespace
}  // namespace plimsoll::pack
