#include "plimsoll/pack/check/check_packing.h"

#include <gtest/gtest.h>

#include "plimsoll/base/random.h"
#include "plimsoll/pack/pack.h"
#include "plimsoll/pack/testing/brute_force.h"

namespace plimsoll::pack {
namespace {

Packing at(std::initializer_list<std::int64_t> offsets) {
  Packing packing;
  packing.status = PackStatus::kFeasible;
  for (const std::int64_t offset : offsets) packing.offsets.push_back(Offset(offset));
  return packing;
}

Problem two(Interval<std::int64_t> a, Interval<std::int64_t> b) {
  Problem problem;
  problem.buffers = {{.lifetime = a, .size = 4_bytes}, {.lifetime = b, .size = 4_bytes}};
  return problem;
}

TEST(PackingChecker, RejectsOverlapInTimeAndSpace) {
  EXPECT_FALSE(check_packing(two({0, 3}, {2, 5}), at({0, 3})));
  EXPECT_TRUE(check_packing(two({0, 3}, {2, 5}), at({0, 4})));
  EXPECT_TRUE(check_packing(two({0, 3}, {3, 5}), at({0, 3})));
}

TEST(PackingChecker, RejectsEveryOtherBrokenRule) {
  Problem problem = two({0, 3}, {0, 3});
  EXPECT_FALSE(check_packing(problem, at({0})));
  EXPECT_FALSE(check_packing(problem, at({-4, 0})));
  problem.set_capacity(7_bytes);
  EXPECT_FALSE(check_packing(problem, at({0, 4})));
  problem.set_capacity(8_bytes);
  EXPECT_TRUE(check_packing(problem, at({0, 4})));
  problem.buffers[1].alignment = 8;
  EXPECT_FALSE(check_packing(problem, at({0, 4})));
  problem.buffers[1].alignment = 1;
  problem.buffers[0].fixed = Offset(4);
  EXPECT_FALSE(check_packing(problem, at({0, 4})));
  EXPECT_TRUE(check_packing(problem, at({4, 0})));
  problem.contiguous = {{BufferId(0), BufferId(1)}};
  EXPECT_FALSE(check_packing(problem, at({4, 0})));
  problem.contiguous.clear();
  problem.ends = {ArenaEnd::kFront, ArenaEnd::kBack};
  EXPECT_FALSE(check_packing(problem, at({4, 0})));
}

// Both checkers must agree on packings that are right and on packings with one buffer moved.
TEST(PackingChecker, FastAndSlowAgree) {
  int right = 0, wrong = 0;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    Random random(seed);
    const Problem problem = testing::random_small(random, 8, {});
    auto packing = pack(problem, {.deadline_seconds = 0.01, .deterministic = true});
    if (!packing || packing->offsets.empty()) continue;
    packing->heights.clear();
    auto& moved = packing->offsets[static_cast<std::size_t>(
        random.below(static_cast<std::int64_t>(problem.size())))];
    moved = Offset(std::max<std::int64_t>(0, moved.value + random.between(-3, 3)));
    const bool is_right = check_packing_slowly(problem, *packing).has_value();
    EXPECT_EQ(check_packing(problem, *packing).has_value(), is_right) << "seed " << seed;
    ++(is_right ? right : wrong);
  }
  EXPECT_GE(right, 300);
  EXPECT_GE(wrong, 300);
}

}  // namespace
}  // namespace plimsoll::pack
