#include "plimsoll/api/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "plimsoll/api/testing/same_bits.h"
#include "plimsoll/kernels/cpu/cpu_kernels.h"
#include "plimsoll/plan/check_plan.h"
#include "plimsoll/plan/testing/random_graph.h"

namespace plimsoll::api {
namespace {

// Every combination that changes where things lie: five choices of two, then one to three streams.
// A number names one.
constexpr int kPlacements = 1 << 5;
constexpr int kCombinations = 3 * kPlacements;

PlanOptions combination(int which, const ops::KernelTable& kernels) {
  PlanOptions out;
  out.kernels = kernels;
  out.in_place = (which & 1) != 0;
  out.share = (which & 2) != 0;
  out.two_ended = (which & 4) != 0;
  out.order = (which & 8) != 0 ? schedule::OrderChoice::kSearch : schedule::OrderChoice::kGiven;
  out.bucket = Bytes((which & 16) != 0 ? 256 : 0);
  out.streams = 1 + which / kPlacements;
  out.compare = false;
  return out;
}

// Every set of remedies, on one and on two streams, a little above the least that is found.
constexpr int kRemedySets = 2 * 7;

PlanOptions remedies(int which, const ops::KernelTable& kernels) {
  PlanOptions out;
  out.kernels = kernels;
  const int set = 1 + which / 2;
  out.remedies = {.recompute = (set & 1) != 0,
                  .swap = (set & 2) != 0,
                  .encode = (set & 4) != 0,
                  .lossy = false};
  out.streams = 1 + which % 2;
  out.budget = "80%";
  out.deterministic = true;
  out.compare = false;
  return out;
}

plan::Plan planned(const ir::Graph& graph, const PlanOptions& options) {
  auto out = plan_graph(graph, options);
  EXPECT_TRUE(out) << out.error().message;
  return out ? std::move(out->plan) : plan::Plan{};
}

// One graph, its kernels, and what a run without a plan leaves behind.
class Verifier {
 public:
  explicit Verifier(std::uint64_t seed) : seed_(seed), graph_(plan::random_graph(seed)) {
    auto kernels = kernels::cpu_kernel_facts(graph_, {1});
    EXPECT_TRUE(kernels) << kernels.error().message;
    kernels_ = *std::move(kernels);
    auto expected = run_on_demand_for(graph_, 2);
    EXPECT_TRUE(expected) << expected.error().message;
    expected_ = *std::move(expected);
  }

  // Checked, no smaller than its peak live bytes, the same when planned twice, the same bits as
  // without a plan.
  void expect_right(int which) const {
    SCOPED_TRACE(fmt::format("seed {} combination {}", seed_, which));
    const PlanOptions options = combination(which, kernels_);
    const plan::Plan plan = planned(graph_, options);
    EXPECT_TRUE(planned(graph_, options) == plan);
    EXPECT_LE(plan.proof.load, plan.proof.lower_bound);
    expect_same_bits(plan);
  }

  // The same within a budget. Not every set of remedies reaches every budget.
  bool expect_right_within_budget(int which) const {
    SCOPED_TRACE(fmt::format("seed {} remedies {}", seed_, which));
    const PlanOptions options = remedies(which, kernels_);
    const auto out = plan_graph(graph_, options);
    if (!out) {
      EXPECT_TRUE(out.error().code == ErrorCode::kDoesNotFit ||
                  out.error().code == ErrorCode::kNoAnswer)
          << out.error().message;
      return false;
    }
    EXPECT_LE(out->plan.arena_bytes(), out->plan.budget);
    expect_same_bits(out->plan);
    return true;
  }

 private:
  void expect_same_bits(const plan::Plan& plan) const {
    EXPECT_THAT(plan::check_plan(plan).problems, ::testing::IsEmpty());
    EXPECT_LE(plan.proof.lower_bound, plan.arena_bytes());
    for (const bool poison : {false, true}) {
      const auto got = run_planned_for(plan, 2, poison);
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_TRUE(*got == expected_) << "poison " << poison;
    }
  }

  std::uint64_t seed_;
  ir::Graph graph_;
  ops::KernelTable kernels_;
  LeftBehind expected_;
};

TEST(PlanGraph, RandomGraphsRunAsWithoutAPlanUnderEveryCombination) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    const Verifier verifier(seed);
    for (int which = 0; which < kCombinations && !HasFailure(); ++which)
      verifier.expect_right(which);
  }
}

TEST(PlanGraph, GroupsOfLongAndShortLivedBuffersLieAtOneEnd) {
  for (const auto& [seed, which] : {std::pair(4125, 93), {8725, 85}, {10269, 93}, {10806, 54}})
    Verifier(static_cast<std::uint64_t>(seed)).expect_right(which);
}

TEST(PlanGraph, RandomGraphsRunAsWithoutAPlanWithinABudget) {
  int fitted = 0;
  const Verifier verifier(1);
  for (int which = 0; which < kRemedySets && !HasFailure(); which += 2)
    fitted += verifier.expect_right_within_budget(which);
  EXPECT_GE(fitted, 4) << "of " << kRemedySets / 2;
}

// Ten thousand graphs in a hundred tests, so that GTEST_TOTAL_SHARDS spreads them over cores. Each
// graph under one combination, or under all when PLIMSOLL_ALL_COMBINATIONS is set; every twentieth
// within a budget, because a search takes as long as a hundred plans.
constexpr std::uint64_t kWithinBudget = 20;
class SlowPlanGraph : public ::testing::TestWithParam<int> {};

TEST_P(SlowPlanGraph, AHundredRandomGraphsRunAsWithoutAPlan) {
  const bool all = std::getenv("PLIMSOLL_ALL_COMBINATIONS") != nullptr;
  int fitted = 0;
  for (std::uint64_t k = 0; k < 100; ++k) {
    const std::uint64_t seed = 1000 + 100 * static_cast<std::uint64_t>(GetParam()) + k;
    const Verifier verifier(seed);
    for (int which = 0; which < kCombinations && !HasFailure(); ++which) {
      if (all || static_cast<std::uint64_t>(which) == seed % kCombinations)
        verifier.expect_right(which);
    }
    if (k % kWithinBudget == 0 && !HasFailure())
      fitted +=
          verifier.expect_right_within_budget(static_cast<int>(seed / kWithinBudget % kRemedySets));
    if (HasFailure()) return;
  }
  EXPECT_GE(fitted, 1) << "of 5: remedies that are never met test nothing";
}

INSTANTIATE_TEST_SUITE_P(Seeds, SlowPlanGraph, ::testing::Range(0, 100));

TEST(PlanGraph, AnotherOrderIsNeverWorse) {
  bool better = false;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const ir::Graph graph = plan::random_graph(seed);
    const Bytes natural = planned(graph, {}).arena_bytes();
    for (const auto order : {schedule::OrderChoice::kList, schedule::OrderChoice::kSearch}) {
      PlanOptions options;
      options.order = order;
      const Bytes reordered = planned(graph, options).arena_bytes();
      EXPECT_LE(reordered, natural) << seed;
      better = better || reordered < natural;
    }
  }
  EXPECT_TRUE(better);
}

TEST(PlanGraph, APinnedValueIsThereAtTheEndAndNamedInTheResults) {
  const ir::Graph graph = plan::random_graph(5);
  const ValueId middle = graph.nodes[graph.nodes.size() / 2].outputs[0];
  PlanOptions options;
  options.pinned = {graph.value(middle).name};
  const plan::Plan plan = planned(graph, options);
  const auto named =
      std::find_if(plan.results.begin(), plan.results.end(), [&](const plan::ValueSlot& result) {
        return graph.value(result.value).name == options.pinned[0];
      });
  EXPECT_NE(named, plan.results.end());
  options.pinned = {"no such value"};
  EXPECT_EQ(plan_graph(graph, options).error().code, ErrorCode::kUsage);
}

TEST(PlanGraph, EachRemedyAddsToTheOneBefore) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const auto out = plan_graph(plan::random_graph(seed), {});
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_LE(out->summary.in_place, out->summary.baseline);
    EXPECT_LE(out->summary.shared, out->summary.baseline);
    EXPECT_LE(out->summary.both, out->summary.in_place);
    EXPECT_LE(out->summary.no_recompute, out->summary.both);
  }
}

}  // namespace
}  // namespace plimsoll::api
