#include "plimsoll/api/planning.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "plimsoll/api/testing/same_bits.h"
#include "plimsoll/kernels/cpu/cpu_kernels.h"
#include "plimsoll/plan/check_plan.h"
#include "plimsoll/plan/testing/random_graph.h"

namespace plimsoll::api {
namespace {

// Every combination that changes where things lie. Bit by bit, so that a number names one.
constexpr int kCombinations = 1 << 5;

PlanOptions combination(int bits, const ops::KernelTable& kernels) {
  PlanOptions out;
  out.kernels = kernels;
  out.in_place = (bits & 1) != 0;
  out.share = (bits & 2) != 0;
  out.two_ended = (bits & 4) != 0;
  out.order = (bits & 8) != 0 ? schedule::OrderChoice::kSearch : schedule::OrderChoice::kGiven;
  out.bucket = Bytes((bits & 16) != 0 ? 256 : 0);
  return out;
}

plan::Plan planned(const ir::Graph& graph, const PlanOptions& options) {
  auto out = plan_graph(graph, options);
  EXPECT_TRUE(out) << out.error().message;
  return out ? std::move(out->plan) : plan::Plan{};
}

// Checked, no smaller than its load, the same when made again, and the same bits as without a plan.
void expect_right(std::uint64_t seed, int bits) {
  SCOPED_TRACE(fmt::format("seed {} combination {}", seed, bits));
  const ir::Graph graph = plan::random_graph(seed);
  const auto kernels = kernels::cpu_kernel_facts(graph, {1});
  ASSERT_TRUE(kernels) << kernels.error().message;
  PlanOptions options = combination(bits, *kernels);
  if (seed % 4 == 0 && bits % 4 == 3) options.streams = 2 + static_cast<int>(seed / 4 % 2);
  const plan::Plan plan = planned(graph, options);
  EXPECT_THAT(plan::check_plan(plan).problems, ::testing::IsEmpty());
  EXPECT_LE(plan.proof.load, plan.arena_bytes());
  EXPECT_TRUE(planned(graph, options) == plan);
  const auto expected = run_on_demand_for(graph, 2);
  ASSERT_TRUE(expected) << expected.error().message;
  const auto got = run_planned_for(plan, 2);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(*got == *expected);
  const auto poisoned = run_planned_for(plan, 2, true);
  ASSERT_TRUE(poisoned) << poisoned.error().message;
  EXPECT_TRUE(*poisoned == *expected);
}

TEST(PlanGraph, RandomGraphsRunAsWithoutAPlanUnderEveryCombination) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    for (int bits = 0; bits < kCombinations; ++bits) {
      expect_right(seed, bits);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(SlowPlanGraph, TenThousandRandomGraphsRunAsWithoutAPlan) {
  for (std::uint64_t seed = 1000; seed < 11000; ++seed) {
    expect_right(seed, static_cast<int>(seed % kCombinations));
    if (::testing::Test::HasFailure()) return;
  }
}

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
  const auto named = std::find_if(plan.results.begin(), plan.results.end(), [&](const plan::ValueSlot& result) {
    return graph.value(result.value).name == options.pinned[0];
  });
  EXPECT_NE(named, plan.results.end());
  options.pinned = {"no such value"};
  EXPECT_EQ(plan_graph(graph, options).error().code, ErrorCode::kUsage);
}

TEST(PlanGraph, EachRemedyAddsToTheOneBefore) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    const auto out = plan_graph(plan::random_graph(seed), {});
    ASSERT_TRUE(out) << out.error().message;
    EXPECT_LE(out->summary.in_place, out->summary.baseline);
    EXPECT_LE(out->summary.shared, out->summary.baseline);
    EXPECT_LE(out->summary.both, out->summary.in_place);
    EXPECT_LE(out->summary.keep_all, out->summary.both);
  }
}

}  // namespace
}  // namespace plimsoll::api
