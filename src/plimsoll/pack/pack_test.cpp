#include "plimsoll/pack/pack.h"
#include "plimsoll/base/testing/test_paths.h"

#include <cstdlib>
#include <filesystem>
#include <limits>

#include <gtest/gtest.h>

#include "plimsoll/base/file.h"
#include "plimsoll/base/random.h"
#include "plimsoll/pack/check/check_packing.h"
#include "plimsoll/pack/formats/csv.h"
#include "plimsoll/pack/model/generate.h"
#include "plimsoll/pack/testing/brute_force.h"

namespace plimsoll::pack {
namespace {

Problem harbour() {
  Problem problem;
  problem.buffers = {{.lifetime = {0, 3}, .size = 4_bytes},
                     {.lifetime = {3, 9}, .size = 4_bytes},
                     {.lifetime = {0, 9}, .size = 8_bytes}};
  return problem;
}

Problem corpus(const std::string& name) {
  const auto text = read_file(test_source_dir().string() + "/tests/corpus/packing/" + name);
  EXPECT_TRUE(text) << name;
  auto problem = read_csv(*text);
  EXPECT_TRUE(problem) << name;
  return *problem;
}

Packing packed(const Problem& problem, PackOptions options = {}) {
  options.deterministic = options.threads == 1;
  const Result<Packing> packing = pack(problem, options);
  EXPECT_TRUE(packing) << packing.error().message;
  if (!packing->offsets.empty()) {
    const Status checked = check_packing(problem, *packing);
    EXPECT_TRUE(checked) << checked.error().message;
  }
  return *packing;
}

// State that leaves memory and comes back to the same place: boxes cannot share its gap, pieces
// can. With a search that asked the boxes height by height this took minutes.
TEST(Pack, StateThatComesBackIsPackedWithinItsCountedWork) {
  Problem problem;
  Random random(3);
  for (int k = 0; k < 40; ++k) {
    const std::int64_t away = 20 + random.below(100);
    const Bytes size(64 * (1 + random.below(1 << 20)));
    problem.buffers.push_back({.lifetime = {0, away}, .size = size, .alignment = 64});
    problem.buffers.push_back(
        {.lifetime = {away + 20 + random.below(40), 200}, .size = size, .alignment = 64});
    problem.colocated.push_back({BufferId(std::size_t(2 * k)), BufferId(std::size_t(2 * k + 1))});
  }
  for (std::int64_t t = 0; t < 195; ++t) {
    problem.buffers.push_back({.lifetime = {t, t + 1 + random.below(5)},
                               .size = Bytes(64 * (1 + random.below(1 << 20))),
                               .alignment = 64});
  }
  PackOptions options;
  options.goal = Goal::kMinimize;
  options.deadline_seconds = 0.05;
  const Packing packing = packed(problem, options);
  EXPECT_LE(packing.height().value, packing.lower_bound.value * 5 / 4);
}

TEST(Pack, PutsTheHarbourInTwelveBytes) {
  const Packing packing = packed(harbour());
  EXPECT_EQ(packing.height(), 12_bytes);
  EXPECT_EQ(packing.lower_bound, 12_bytes);
  EXPECT_EQ(packing.status, PackStatus::kOptimal);
}

TEST(Pack, NothingNeedsNothing) {
  EXPECT_EQ(packed({}).height(), 0_bytes);
  EXPECT_EQ(packed({}).status, PackStatus::kOptimal);
}

TEST(Pack, LifetimesThatTouchDoNotMeet) {
  Problem problem;
  problem.buffers = {{.lifetime = {0, 5}, .size = 7_bytes}, {.lifetime = {5, 9}, .size = 7_bytes}};
  EXPECT_EQ(packed(problem).height(), 7_bytes);
}

TEST(Pack, ZeroSizesAndZeroLifetimesNeedNoRoom) {
  Problem problem = harbour();
  problem.buffers.push_back({.lifetime = {0, 9}, .size = 0_bytes});
  problem.buffers.push_back({.lifetime = {4, 4}, .size = 100_bytes});
  EXPECT_EQ(packed(problem).height(), 12_bytes);
}

TEST(Pack, TakesSizesUpToTwoToTheSixtyTwo) {
  Problem problem;
  problem.buffers = {{.lifetime = {0, 5}, .size = Bytes(kLargest)}};
  EXPECT_EQ(packed(problem).height().value, kLargest);
  problem.buffers.push_back(problem.buffers.front());
  EXPECT_EQ(pack(problem, {}).error().code, ErrorCode::kBadInput);
  problem.buffers = {{.lifetime = {0, 5}, .size = Bytes(kLargest / 2)},
                     {.lifetime = {0, 5}, .size = Bytes(kLargest / 2), .alignment = 1}};
  EXPECT_EQ(packed(problem).height().value, kLargest);
}

TEST(Pack, AlignmentMayBeLargerThanTheSize) {
  Problem problem;
  problem.buffers = {{.lifetime = {0, 2}, .size = 3_bytes, .alignment = 64},
                     {.lifetime = {0, 2}, .size = 3_bytes, .alignment = 64},
                     {.lifetime = {0, 2}, .size = 61_bytes}};
  EXPECT_EQ(packed(problem).height(), 67_bytes);
  EXPECT_EQ(packed(problem).status, PackStatus::kOptimal);
}

// All offsets are even, but the top of the 5-byte buffer is not: the bound is 11, and the
// refutation of 11 must raise it to 12, the next height that any buffer can end at. The empty
// member pins its class.
TEST(Pack, ARefutedHeightRaisesTheBoundToTheNextPossibleOne) {
  Problem problem;
  problem.buffers = {{.lifetime = {2, 7}, .size = 5_bytes, .alignment = 2},
                     {.lifetime = {4, 5}, .size = 0_bytes, .fixed = Offset(2)},
                     {.lifetime = {2, 4}, .size = 4_bytes, .alignment = 2},
                     {.lifetime = {0, 4}, .size = 1_bytes, .alignment = 4}};
  problem.colocated = {{BufferId(1), BufferId(0)}};
  const Packing packing = packed(problem);
  EXPECT_EQ(packing.height(), 12_bytes);
  EXPECT_EQ(packing.status, PackStatus::kOptimal);
}

TEST(Pack, TwoFixedBuffersInEachOthersWayAreTheCore) {
  Problem problem = harbour();
  problem.buffers[0].fixed = Offset(2);
  problem.buffers[2].fixed = Offset(0);
  const Packing packing = packed(problem);
  EXPECT_EQ(packing.status, PackStatus::kInfeasible);
  EXPECT_EQ(packing.core.size(), 2u);
}

TEST(Pack, TheCoreOfAFullMomentLeavesBystandersOut) {
  Problem problem = harbour();
  problem.buffers.push_back({.lifetime = {20, 30}, .size = 5_bytes});
  problem.set_capacity(11_bytes);
  const Packing packing = packed(problem);
  EXPECT_EQ(packing.status, PackStatus::kInfeasible);
  EXPECT_EQ(packing.core.size(), 2u);
}

TEST(Pack, FixedBuffersAreObstacles) {
  Problem problem = harbour();
  problem.buffers[2].fixed = Offset(4);
  const Packing packing = packed(problem);
  EXPECT_EQ(packing.height(), 12_bytes);
  EXPECT_EQ(packing.offsets[0].value, 0);
}

TEST(Pack, ContiguousGroupsKeepTheirOrder) {
  Problem problem;
  for (int i = 0; i < 6; ++i)
    problem.buffers.push_back({.lifetime = {i, i + 3}, .size = Bytes(10 + i)});
  problem.contiguous = {{BufferId(4), BufferId(0), BufferId(2)}};
  const Packing packing = packed(problem);
  EXPECT_EQ(packing.offsets[0].value, packing.offsets[4].value + 14);
  EXPECT_EQ(packing.offsets[2].value, packing.offsets[0].value + 10);
}

TEST(Pack, ClocksOfTwoStreamsAllowWhatOneLineWouldForbid) {
  // Each stream reuses its own memory; buffers of different streams always meet.
  Problem problem;
  problem.clocks.streams = 2;
  for (int i = 0; i < 4; ++i) problem.buffers.push_back({.size = 8_bytes});
  problem.clocks.ready = {0, 0, 1, 0, 0, 0, 0, 1};
  problem.clocks.released = {1, 0, 2, 0, 0, 1, 0, 2};
  const Packing packing = packed(problem);
  EXPECT_EQ(packing.height(), 16_bytes);
  EXPECT_EQ(packing.offsets[0], packing.offsets[1]);
}

TEST(Pack, FrontStaysBelowBack) {
  Problem problem;
  for (int i = 0; i < 40; ++i)
    problem.buffers.push_back({.lifetime = {i, i % 4 == 0 ? 60 : i + 2}, .size = Bytes(16 + i)});
  split_ends_by_lifetime(problem, 0.3);
  const Packing packing = packed(problem);
  EXPECT_TRUE(packing.fits());
  EXPECT_TRUE(check_packing_slowly(problem, packing));
}

TEST(Pack, NoBufferCrossesASlab) {
  Problem problem;
  for (int i = 0; i < 30; ++i)
    problem.buffers.push_back({.lifetime = {i % 7, i % 7 + 5}, .size = Bytes(10 + i)});
  problem.memories[0].slab = 64_bytes;
  EXPECT_TRUE(packed(problem, {.deadline_seconds = 0.2}).fits());
  problem.buffers.push_back({.lifetime = {0, 5}, .size = 65_bytes});
  EXPECT_EQ(packed(problem).status, PackStatus::kInfeasible);
}

TEST(Pack, SlabsHoldBuffersWholeEvenWhenAWindowShowsLess) {
  Problem problem;
  problem.buffers = {{.lifetime = {0, 4}, .size = 2_bytes}, {.lifetime = {0, 4}, .size = 5_bytes}};
  problem.gaps = {{BufferId(1), {0, 4}, {0, 2}}};
  problem.memories[0].slab = 5_bytes;
  const Packing packing = packed(problem);
  EXPECT_EQ(packing.status, PackStatus::kOptimal);
  EXPECT_EQ(packing.offsets[1].value % 5, 0);
}

TEST(Pack, SpillsTheLeastCostlyToTheSlowMemory) {
  Problem problem;
  for (int i = 0; i < 20; ++i) problem.buffers.push_back({.lifetime = {0, 5}, .size = 10_bytes});
  problem.memories = {{"fast", 100_bytes, 0, {}}, {"slow", {}, 1, {}}};
  const Packing packing = packed(problem);
  EXPECT_TRUE(packing.fits());
  EXPECT_EQ(packing.heights[0], 100_bytes);
  EXPECT_DOUBLE_EQ(packing.cost, 100);
}

TEST(Pack, RepackingMovesNothingWhenThereIsRoom) {
  Problem problem = generate(Family::kTraining, 300, 5);
  const Packing before = packed(problem);
  for (std::size_t i = 0; i < problem.size(); ++i) problem.buffers[i].hint = before.offsets[i];
  problem.buffers.push_back({.lifetime = {10, 20}, .size = 4096_bytes});
  problem.set_capacity(before.height() + 4096_bytes);
  const Packing after = packed(problem, {.keep_hints = true});
  EXPECT_TRUE(after.fits());
  EXPECT_EQ(after.moved, 0);
}

TEST(Pack, HintsThatFitAreTakenOver) {
  Problem problem = corpus("E.1048576.csv");
  problem.set_capacity(1_MiB);
  const Packing before = packed(problem, {.deadline_seconds = 60});
  ASSERT_TRUE(before.fits());
  for (std::size_t i = 0; i < problem.size(); ++i) problem.buffers[i].hint = before.offsets[i];
  const Packing after = packed(problem);
  EXPECT_TRUE(after.fits());
  EXPECT_EQ(after.method, "hints");
}

class PackCorpus : public ::testing::TestWithParam<const char*> {};

TEST_P(PackCorpus, FitsOneMebibyteWithTenSeeds) {
  Problem problem = corpus(std::string(GetParam()) + ".1048576.csv");
  problem.set_capacity(1_MiB);
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    EXPECT_TRUE(packed(problem, {.deadline_seconds = 60, .seed = seed}).fits()) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(MiniMalloc, PackCorpus, ::testing::Values("A", "B", "C", "D", "E", "F"));

TEST(Pack, ReachesTheBoundOnRealGraphs) {
  EXPECT_EQ(packed(corpus("G_1.csv")).status, PackStatus::kOptimal);
  EXPECT_EQ(packed(corpus("resnet50.csv")).status, PackStatus::kOptimal);
  EXPECT_EQ(packed(corpus("input.12.csv")).height(), 12_bytes);
}

TEST(Pack, SolvesPerfectTilings) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    const Problem problem = generate(Family::kTiling, 40 + 60 * seed, seed);
    EXPECT_EQ(packed(problem, {.deadline_seconds = 60}).height(), 1_MiB) << "seed " << seed;
  }
}

TEST(Pack, DeterministicAnswersAreTheSameEveryTime) {
  const Problem problem = generate(Family::kRandom, 3000, 11);
  const PackOptions options{.deadline_seconds = 0.05, .deterministic = true};
  EXPECT_EQ(pack(problem, options)->offsets, pack(problem, options)->offsets);
}

TEST(Pack, AlwaysHasAnAnswerEvenWithoutTime) {
  const Problem problem = generate(Family::kRandom, 20000, 3);
  EXPECT_TRUE(packed(problem, {.deadline_seconds = 0}).fits());
  EXPECT_TRUE(pack(problem, {.deadline_seconds = 0})->fits());  // by the clock
}

TEST(Pack, WorkersAgreeWithOneThread) {
  Problem problem = corpus("D.1048576.csv");
  problem.set_capacity(1_MiB);
  EXPECT_TRUE(packed(problem, {.deadline_seconds = 300, .threads = 3}).fits());
}

TEST(Pack, NamedGreedyOrdersGiveValidPackings) {
  const Problem problem = corpus("A.1048576.csv");
  for (int method = static_cast<int>(Method::kBySize);
       method <= static_cast<int>(Method::kGivenOrder); ++method) {
    const Packing packing = packed(problem, {.method = static_cast<Method>(method)});
    EXPECT_TRUE(packing.fits()) << method;
    EXPECT_GT(packing.height(), packing.lower_bound) << method;
  }
}

TEST(Pack, NamedGreedyOrdersAnswerEvenWithoutTime) {
  const Problem problem = generate(Family::kRandom, 20000, 3);
  for (int method = static_cast<int>(Method::kBySize);
       method <= static_cast<int>(Method::kGivenOrder); ++method) {
    const PackOptions options{.method = static_cast<Method>(method), .deadline_seconds = 0.001};
    EXPECT_TRUE(packed(problem, options).fits()) << method;
  }
}

// Bits 0 to 4 and 12: the skyline and large problems; bits 5 to 11: the exact search.
PackOptions with_switches(int bits) {
  const auto on = [&](int bit) { return (bits >> bit & 1) != 0; };
  return {.split_parts = on(5),
          .slack_guidance = on(0),
          .snug_fit = on(1),
          .levelling = on(2),
          .window_search = on(3),
          .peak_stack = on(12),
          .memo = on(6),
          .fail_first = on(7),
          .decompose = on(8),
          .backjump = on(9),
          .snug_cover = on(10),
          .guided_dives = on(11),
          .squeaky_wheel = on(4)};
}

TEST(Pack, EveryCombinationOfSwitchesGivesTheOptimum) {
  Random random(2);
  const Problem problem = testing::random_small(random, 7, {.groups = false, .classes = false});
  const auto best = testing::best_height(problem);
  ASSERT_TRUE(best.known && best.height) << "seed 2";
  for (int bits = 0; bits < 8192; ++bits)
    EXPECT_EQ(packed(problem, with_switches(bits)).height().value, *best.height)
        << "seed 2, bits " << bits;
}

// Small enough for every combination to end in a proof, large enough to jump back over several
// steps.
TEST(Pack, EveryCombinationOfExactSwitchesProvesTheSameOptimum) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const Problem problem = generate(Family::kRandom, 14, seed);
    std::int64_t best = 0;
    for (int bits = 0; bits < 128; ++bits) {
      PackOptions options = with_switches(bits << 5);
      options.goal = Goal::kMinimize;
      const Packing packing = packed(problem, options);
      if (bits == 0) best = packing.height().value;
      EXPECT_EQ(packing.status, PackStatus::kOptimal) << "seed " << seed << ", bits " << bits;
      EXPECT_EQ(packing.height().value, best) << "seed " << seed << ", bits " << bits;
    }
  }
}

// Above 3,000 buffers the skylines, the window search and the peak stack answer; counted work keeps
// this the same everywhere.
TEST(Pack, EveryCombinationOfSkylineSwitchesPacksALargeProblem) {
  const Problem problem = generate(Family::kRandom, 4000, 21);
  for (int bits = 0; bits < 64; ++bits) {
    PackOptions options = with_switches((bits & 31) | (bits & 32) << 7);
    options.goal = Goal::kMinimize;
    options.deadline_seconds = 0.02;
    const Packing packing = packed(problem, options);
    EXPECT_TRUE(packing.fits()) << bits;
    EXPECT_LT(packing.gap(), 0.2) << bits;
  }
}

TEST(Pack, RefusesOptionsThatMakeNoSense) {
  EXPECT_EQ(pack({}, {.deadline_seconds = -1}).error().code, ErrorCode::kUsage);
  EXPECT_EQ(pack({}, {.deadline_seconds = std::numeric_limits<double>::quiet_NaN()}).error().code,
            ErrorCode::kUsage);
  EXPECT_EQ(pack({}, {.threads = -1}).error().code, ErrorCode::kUsage);
}

TEST(SlowPack, ATenthOfAMillionOfEachFamilyIsValid) {
  for (const Family family : {Family::kTiling, Family::kTraining, Family::kRandom}) {
    const Problem problem = generate(family, 100'000, 9);
    EXPECT_FALSE(packed(problem, {.goal = Goal::kMinimize, .deadline_seconds = 1}).offsets.empty());
  }
}

}  // namespace
}  // namespace plimsoll::pack
