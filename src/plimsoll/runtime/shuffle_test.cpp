#include "plimsoll/runtime/shuffle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace plimsoll::runtime {
namespace {

std::vector<std::int64_t> order_of(std::int64_t count, std::uint64_t seed) {
  std::vector<std::int64_t> out;
  for (std::int64_t place = 0; place < count; ++place) out.push_back(shuffled(place, count, seed));
  return out;
}

TEST(Shuffle, HasEveryThingOnceForEveryCountAndSeed) {
  for (std::int64_t count = 1; count <= 300; ++count) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      std::vector<std::int64_t> order = order_of(count, seed);
      std::sort(order.begin(), order.end());
      for (std::int64_t i = 0; i < count; ++i)
        ASSERT_EQ(order[static_cast<std::size_t>(i)], i) << count << " things, seed " << seed;
    }
  }
}

// Chi-square of where the first of ten things lands, over many seeds: 9 degrees of freedom, 27.9 is
// one in a thousand.
TEST(Shuffle, PutsThingsAnywhereAlike) {
  std::vector<double> seen(10, 0);
  constexpr int kSeeds = 10000;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed)
    seen[static_cast<std::size_t>(shuffled(0, 10, seed))] += 1;
  double chi = 0;
  for (const double count : seen) chi += (count - 1000) * (count - 1000) / 1000;
  EXPECT_LT(chi, 27.9);
  EXPECT_NE(order_of(100, 1), order_of(100, 2));
}

}  // namespace
}  // namespace plimsoll::runtime
