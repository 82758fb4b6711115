#include "plimsoll/base/checked.h"

#include <limits>

#include <gtest/gtest.h>

#include "plimsoll/base/interval.h"
#include "plimsoll/base/units.h"

namespace plimsoll {
namespace {

constexpr auto kMax = std::numeric_limits<std::int64_t>::max();

TEST(Checked, OverflowIsNothingNotAWrap) {
  EXPECT_EQ(checked_add(kMax, 1), std::nullopt);
  EXPECT_EQ(checked_multiply(kMax / 2, 3), std::nullopt);
  EXPECT_EQ(checked_round_up(kMax - 1, 64), std::nullopt);
  EXPECT_EQ(checked_round_up(65, 64), 128);
  EXPECT_EQ(checked_round_up(0, 64), 0);
}

TEST(Units, OffsetsAndBytesMixOnlyWhereItMeansSomething) {
  EXPECT_EQ(Offset(64) + Bytes(8), Offset(72));
  EXPECT_EQ(Offset(72) - Offset(64), Bytes(8));
  EXPECT_EQ(2_KiB, Bytes(2048));
  EXPECT_FALSE(ValueId().valid());
}

TEST(Interval, IsHalfOpen) {
  const Interval<int> a{0, 5};
  EXPECT_FALSE(a.meets({5, 7}));
  EXPECT_TRUE(a.meets({4, 7}));
  EXPECT_FALSE(a.contains(5));
}

}  // namespace
}  // namespace plimsoll
