#include "plimsoll/pack/best_dives.h"

#include <gtest/gtest.h>

namespace plimsoll::pack {
namespace {

// Two items lie, then both are taken back.
void dive(BestDives& dives, std::uint32_t a, std::int64_t at_a, std::uint32_t b, std::int64_t at_b) {
  dives.place(a, at_a);
  dives.place(b, at_b);
  dives.take_back(b);
  dives.take_back(a);
}

TEST(BestDives, AdviseWhatTheDiveThatGotFurthestHad) {
  const double areas[] = {10, 20, 30};
  BestDives dives(areas);
  Random random(1);
  dives.begin(false, random);
  dive(dives, 0, 5, 1, 7);
  dive(dives, 0, 6, 2, 9);  // the same dive gets further after going back
  dives.end();
  dives.begin(true, random);
  EXPECT_TRUE(dives.advise(0, 6));
  EXPECT_TRUE(dives.advise(2, 9));
  EXPECT_FALSE(dives.advise(0, 5));
  EXPECT_FALSE(dives.advise(1, 7));
}

TEST(BestDives, AreReplacedOnlyByThoseThatGetFurther) {
  const double areas[] = {10, 20, 30};
  BestDives dives(areas);
  Random random(1);
  dives.begin(false, random);
  dive(dives, 0, 1, 2, 1);
  dives.end();
  dives.begin(true, random);
  dive(dives, 0, 2, 1, 2);
  dives.end();
  dives.begin(true, random);
  EXPECT_TRUE(dives.advise(2, 1));
  dive(dives, 1, 3, 2, 3);
  dives.end();
  dives.begin(true, random);
  EXPECT_TRUE(dives.advise(1, 3));
  EXPECT_FALSE(dives.advise(0, 1));
}

TEST(BestDives, AdviseNothingInAFreeDiveOrAfterClearing) {
  const double areas[] = {10, 20};
  BestDives dives(areas);
  Random random(1);
  dives.begin(true, random);
  dive(dives, 0, 1, 1, 1);
  dives.end();
  dives.begin(false, random);
  EXPECT_FALSE(dives.advise(0, 1));
  dives.end();
  dives.clear();
  dives.begin(true, random);
  EXPECT_FALSE(dives.advise(0, 1));
}

}  // namespace
}  // namespace plimsoll::pack
