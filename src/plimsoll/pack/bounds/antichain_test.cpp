#include "plimsoll/pack/bounds/antichain.h"

#include <gtest/gtest.h>

#include "plimsoll/base/random.h"
#include "plimsoll/pack/pack.h"

namespace plimsoll::pack {
namespace {

std::int64_t weight(const Problem& problem, std::uint32_t set) {
  std::int64_t sum = 0;
  for (std::size_t b = 0; b < problem.size(); ++b) {
    if ((set >> b & 1) != 0) sum += problem.buffers[b].size.value;
  }
  return sum;
}

bool all_meet(const Problem& problem, std::uint32_t set) {
  for (std::size_t a = 0; a < problem.size(); ++a) {
    for (std::size_t b = a + 1; b < problem.size(); ++b) {
      if ((set >> a & 1) != 0 && (set >> b & 1) != 0 && !meet(problem, BufferId(a), BufferId(b)))
        return false;
    }
  }
  return true;
}

// A random program: every stream has a few steps, each of which knows something of the others.
Problem random_program(Random& random, std::size_t buffers) {
  Problem problem;
  problem.clocks.streams = static_cast<int>(random.between(1, 4));
  const auto streams = static_cast<std::size_t>(problem.clocks.streams);
  for (std::size_t b = 0; b < buffers; ++b) {
    problem.buffers.push_back({.size = Bytes(random.between(1, 9))});
    for (std::size_t s = 0; s < streams; ++s) {
      const std::int64_t ready = random.between(0, 4);
      problem.clocks.ready.push_back(ready);
      problem.clocks.released.push_back(ready + random.between(s == 0 ? 1 : 0, 2));
    }
  }
  return problem;
}

TEST(HeaviestAntichain, TwoStreamsThatNeverWait) {
  Problem problem;
  problem.clocks.streams = 2;
  for (const int size : {3, 5, 4, 2}) problem.buffers.push_back({.size = Bytes(size)});
  problem.clocks.ready = {0, 0, 1, 0, 0, 0, 0, 1};
  problem.clocks.released = {1, 0, 2, 0, 0, 1, 0, 2};
  const auto found = heaviest_antichain(problem, {1, 1, 1, 1});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes, 9);
  EXPECT_EQ(found->members, (std::vector{BufferId(1), BufferId(2)}));
}

TEST(HeaviestAntichain, IsTheHeaviestSetThatMeetsInPairs) {
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Problem problem = random_program(random, 10);
    std::int64_t best = 0;
    for (std::uint32_t set = 0; set < 1u << 10; ++set) {
      if (weight(problem, set) > best && all_meet(problem, set)) best = weight(problem, set);
    }
    const auto found = heaviest_antichain(problem, std::vector<char>(problem.size(), 1));
    if (!found) continue;  // more chains than it takes
    ++compared;
    EXPECT_EQ(found->bytes, best);
    std::uint32_t members = 0;
    for (const BufferId id : found->members) members |= 1u << id.index();
    EXPECT_TRUE(all_meet(problem, members));
    EXPECT_EQ(weight(problem, members), best);
  }
  EXPECT_GE(compared, 350);
}

TEST(HeaviestAntichain, BoundsEveryPacking) {
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Problem problem = random_program(random, 40);
    const auto found = heaviest_antichain(problem, std::vector<char>(problem.size(), 1));
    const auto packed =
        pack(problem, {.goal = Goal::kMinimize, .deadline_seconds = 0.001, .deterministic = true});
    ASSERT_TRUE(packed);
    if (found) {
      EXPECT_EQ(packed->lower_bound.value, found->bytes);
      ++compared;
    }
    EXPECT_LE(packed->lower_bound, packed->height());
  }
  EXPECT_GE(compared, 150);
}

TEST(HeaviestAntichain, SaysNothingWhenTheWorkIsTooMuch) {
  Random random(1);
  const Problem problem = random_program(random, 40);
  EXPECT_FALSE(heaviest_antichain(problem, std::vector<char>(problem.size(), 1), 10));
}

}  // namespace
}  // namespace plimsoll::pack
