#include "plimsoll/plan/memories/place_in_memories.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/plan/check_plan.h"
#include "plimsoll/plan/make_plan.h"
#include "plimsoll/plan/memories/moved_plan.h"
#include "plimsoll/plan/testing/random_graph.h"
#include "plimsoll/schedule/fit.h"

namespace plimsoll::plan {
namespace {

using ::testing::IsEmpty;

// Operators that only move bytes, so that every byte in a faster memory counts.
schedule::CostParts moving_cost(const ir::Graph& graph, const ir::Node& node) {
  schedule::CostParts parts;
  parts.launch_seconds = 1e-6;
  for (const ValueId in : node.inputs)
    parts.bytes_moved +=
        in.valid() ? static_cast<double>(ir::bytes_of(graph.value(in).type).value) : 0;
  for (const ValueId out : node.outputs)
    parts.bytes_moved += static_cast<double>(ir::bytes_of(graph.value(out).type).value);
  parts.seconds = parts.launch_seconds + parts.bytes_moved / 1e9;
  return parts;
}

Plan planned_graph(std::uint64_t seed, int nodes) {
  const ir::Graph graph = random_graph(seed, nodes);
  schedule::GraphWorkloadOptions how;
  how.seconds = [](const ir::Graph& g, const ir::Node& n) { return moving_cost(g, n).seconds; };
  const auto mapped = schedule::make_graph_workload(graph, how);
  return *make_plan(graph, *mapped, schedule::keep_all(mapped->workload), {});
}

// Faster memories of these sizes, each four times as fast as the next.
schedule::DeviceProfile profile_with(const std::vector<std::int64_t>& sizes) {
  schedule::DeviceProfile profile = *schedule::shipped_profile("cpu");
  profile.name = "test";
  profile.memory_bytes_per_second = 1e9;
  profile.copy_tax = 0;
  double rate = 4e9;
  for (const std::int64_t bytes : sizes) {
    profile.memories.push_back(
        {fmt::format("fast{}", profile.memories.size()), Bytes(bytes), rate, rate, {1e9, 1e9, 0}});
    rate /= 2;
  }
  return profile;
}

std::int64_t largest_buffer(const Plan& plan) {
  std::int64_t out = 0;
  for (const PlanBuffer& buffer : plan.buffers) out = std::max(out, buffer.bytes.value);
  return out;
}

TEST(PlaceInMemories, EveryPlanPassesTheVerifierAndSearchIsNeverSlowerThanGreedy) {
  int moved = 0, faster = 0;
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    const Plan before = planned_graph(seed, 30);
    const std::int64_t size = largest_buffer(before) * static_cast<std::int64_t>(1 + seed % 4);
    const schedule::DeviceProfile profile =
        seed % 3 == 0 ? profile_with({size, 2 * size}) : profile_with({size});
    double last = std::numeric_limits<double>::infinity();
    for (const PlacementChoice choice :
         {PlacementChoice::kHome, PlacementChoice::kGreedy, PlacementChoice::kSearch}) {
      Plan plan = before;
      const auto summary = place_in_memories(plan, profile, moving_cost,
                                             {.choice = choice, .seed = seed, .most_moves = 500});
      ASSERT_TRUE(summary) << summary.error().message;
      ASSERT_THAT(check_plan(plan).problems, IsEmpty()) << name(choice);
      EXPECT_DOUBLE_EQ(plan.predicted_seconds, summary->seconds);
      for (std::size_t level = 0; level < profile.memories.size(); ++level) {
        EXPECT_LE(summary->memories[level].bytes, profile.memories[level].bytes);
        moved += choice == PlacementChoice::kSearch && summary->memories[level].windows > 0;
      }
      if (choice == PlacementChoice::kHome) {
        EXPECT_NEAR(summary->seconds, before.predicted_seconds, 1e-12);
      }
      if (choice != PlacementChoice::kSearch) {
        last = summary->seconds;
        continue;
      }
      EXPECT_LE(summary->seconds, summary->greedy_seconds);
      EXPECT_LE(summary->seconds, summary->home_seconds);
      faster += summary->seconds < last * (1 - 1e-9);
    }
  }
  EXPECT_GE(moved, 20);
  EXPECT_GE(faster, 6);
}

TEST(PlaceInMemories, ADeviceMemoryThatIsReadOnlyHoldsNothingThatStepsWrite) {
  int fitted = 0, refused = 0, training = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Plan plan = planned_graph(seed, 8);
    schedule::DeviceProfile profile =
        profile_with({seed % 2 == 0 ? plan.arena_bytes().value * 2 : Bytes(64).value});
    profile.read_only = true;
    const auto summary = place_in_memories(plan, profile, moving_cost, {.most_moves = 200});
    if (!plan.graph.updates.empty()) {
      ASSERT_FALSE(summary);
      EXPECT_EQ(summary.error().code, ErrorCode::kUsage) << summary.error().message;
      ++training;
      continue;
    }
    if (!summary) {
      EXPECT_EQ(summary.error().code, ErrorCode::kDoesNotFit);
      EXPECT_NE(summary.error().message.find("fast0"), std::string::npos);
      ++refused;
      continue;
    }
    ++fitted;
    ASSERT_THAT(check_plan(plan).problems, IsEmpty());
    for (const PlanStep& step : plan.steps) {
      for (const Slot& slot : step.outputs)
        EXPECT_GE(plan.buffer(slot.buffer).arena, kFirstLevelArena);
    }
  }
  EXPECT_GE(fitted, 1);
  EXPECT_GE(refused, 1);
  EXPECT_GE(training, 1);
}

TEST(PlaceInMemories, TheVerifierSeesAMoveThatIsMissing) {
  Plan plan = planned_graph(3, 30);
  const auto summary =
      place_in_memories(plan, profile_with({largest_buffer(plan) * 2}), moving_cost,
                        {.choice = PlacementChoice::kSearch, .most_moves = 500});
  ASSERT_TRUE(summary);
  int found = 0, copies = 0, early = 0;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    if (plan.steps[s].node.valid()) continue;
    ++copies;
    Plan broken = plan;
    broken.steps[s].outputs = broken.steps[s].inputs;  // copies onto itself
    found += !check_plan(broken).ok();
    if (plan.steps[s].waits.empty()) continue;
    Plan hasty = plan;
    hasty.steps[s].waits.clear();
    early += !check_plan(hasty).ok();
  }
  EXPECT_GT(copies, 0);
  EXPECT_EQ(found, copies);
  EXPECT_GT(early, 0);
}

TEST(PlaceInMemories, PlansThatCopyAlreadyAreRefused) {
  Plan plan = planned_graph(1, 20);
  plan.steps.front().stream = 1;
  const auto summary =
      place_in_memories(plan, profile_with({1 << 20}), moving_cost, {.most_moves = 200});
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace plimsoll::plan
