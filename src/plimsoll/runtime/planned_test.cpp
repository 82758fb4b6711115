#include "plimsoll/runtime/planned.h"

#include <gtest/gtest.h>

#include "plimsoll/kernels/cpu/cpu_kernels.h"
#include "plimsoll/plan/make_plan.h"
#include "plimsoll/plan/streams.h"
#include "plimsoll/plan/testing/random_graph.h"
#include "plimsoll/runtime/on_demand.h"
#include "plimsoll/runtime/testing/left_behind.h"
#include "plimsoll/schedule/fit.h"

namespace plimsoll::runtime {
namespace {

LeftBehind without_a_plan(const ir::Graph& graph) {
  auto executor = make_on_demand(graph, {.threads = 1});
  EXPECT_TRUE(executor) << executor.error().message;
  return left_behind_after(3, **executor);
}

Result<plan::Plan> keep_all_plan(const ir::Graph& graph, Bytes alignment = Bytes(64)) {
  schedule::GraphWorkloadOptions how;
  how.alignment = alignment;
  PLIMSOLL_TRY(how.kernels, kernels::cpu_kernel_facts(graph, {1}));
  PLIMSOLL_TRY(const auto mapped, schedule::make_graph_workload(graph, how));
  return plan::make_plan(graph, mapped, schedule::keep_all(mapped.workload), {});
}

// The CPU, and a device that behaves as a GPU and dawdles by this seed.
std::vector<std::shared_ptr<kernels::Backend>> backends(std::uint64_t seed) {
  return {kernels::make_cpu_backend(1), kernels::make_fake_backend({.seed = seed})};
}

class PlannedOnStreams : public ::testing::TestWithParam<int> {};

TEST_P(PlannedOnStreams, RunsAsWithoutAPlan) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE(seed);
    const ir::Graph graph = plan::random_graph(seed);
    const LeftBehind expected = without_a_plan(graph);
    for (const bool keep_places : {false, true}) {
      auto one = keep_all_plan(graph, Bytes(seed % 2 == 0 ? 64 : 256));
      ASSERT_TRUE(one) << one.error().message;
      plan::Plan plan = *one;
      if (keep_places) plan.budget = plan.arena_bytes();
      ASSERT_TRUE(plan::spread_over_streams(plan, {.streams = GetParam()}));
      for (const bool poison : {false, true}) {
        for (const auto& backend : backends(seed)) {
          if (backend->device().alignment() > plan.alignment) continue;
          auto executor = make_planned(plan, {.threads = 1, .poison = poison, .backend = backend});
          ASSERT_TRUE(executor) << executor.error().message;
          EXPECT_TRUE(left_behind_after(3, **executor) == expected)
              << backend->device().name() << " places kept " << keep_places << " poison " << poison;
        }
      }
    }
  }
}

TEST(Planned, RunsOnAGpuLikeDeviceAsOnTheCpuWhenValuesAreSwapped) {
  int swapped = 0;
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE(seed);
    const ir::Graph graph = plan::random_graph(seed);
    const LeftBehind expected = without_a_plan(graph);
    schedule::GraphWorkloadOptions how;
    how.alignment = Bytes(256);
    how.kernels = kernels::cpu_kernel_facts(graph, {1}).value();
    const auto mapped = schedule::make_graph_workload(graph, how);
    ASSERT_TRUE(mapped) << mapped.error().message;
    schedule::FitOptions fit;
    fit.remedies = {.recompute = false, .swap = true};
    fit.deterministic = true;
    const auto fitted = schedule::task_by_task(mapped->workload, fit);
    ASSERT_TRUE(fitted && !fitted->empty());
    auto plan = plan::make_plan(graph, *mapped, fitted->back().schedule, {});
    ASSERT_TRUE(plan) << plan.error().message;
    swapped += plan->arenas.size() > 1 ? 1 : 0;
    for (const bool poison : {false, true}) {
      auto executor = make_planned(
          *plan, {.poison = poison, .backend = kernels::make_fake_backend({.seed = seed})});
      ASSERT_TRUE(executor) << executor.error().message;
      EXPECT_TRUE(left_behind_after(3, **executor) == expected) << "poison " << poison;
    }
    std::vector<double> seconds;
    auto in_file = make_planned(*plan, {.swap_file = testing::TempDir(),
                                        .step_seconds = seed % 2 == 0 ? &seconds : nullptr,
                                        .backend = kernels::make_fake_backend({.seed = seed})});
    ASSERT_TRUE(in_file) << in_file.error().message;
    EXPECT_TRUE(left_behind_after(3, **in_file) == expected) << "in a file";
  }
  EXPECT_GE(swapped, 10);
}

TEST(Planned, RefusesAPlanThatAlignsLessThanTheDeviceWants) {
  const auto plan = keep_all_plan(plan::random_graph(1));
  ASSERT_TRUE(plan);
  const auto refused = make_planned(*plan, {.backend = kernels::make_fake_backend({})});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "the plan aligns to 64 bytes, fake wants 256: plan with --device fake");
}

TEST(OnDemand, RunsOnAGpuLikeDeviceAsOnTheCpu) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE(seed);
    const ir::Graph graph = plan::random_graph(seed);
    const LeftBehind expected = without_a_plan(graph);
    for (const bool poison : {false, true}) {
      auto executor = make_on_demand(
          graph, {.poison = poison, .backend = kernels::make_fake_backend({.seed = seed})});
      ASSERT_TRUE(executor) << executor.error().message;
      EXPECT_TRUE(left_behind_after(3, **executor) == expected) << "poison " << poison;
    }
  }
}

TEST(Planned, TimesTheStepsOfWhicheverPlanRanLast) {
  std::vector<double> seconds;
  std::vector<std::unique_ptr<Executor>> executors;
  std::vector<std::size_t> steps;
  for (const std::uint64_t seed : {1, 2, 3}) {
    auto plan = keep_all_plan(plan::random_graph(seed));
    ASSERT_TRUE(plan) << plan.error().message;
    steps.push_back(plan->steps.size());
    auto executor = make_planned(*std::move(plan), {.threads = 1, .step_seconds = &seconds});
    ASSERT_TRUE(executor) << executor.error().message;
    executors.push_back(*std::move(executor));
  }
  for (std::size_t k = 0; k < executors.size(); ++k) {
    left_behind_after(3, *executors[k]);
    EXPECT_EQ(seconds.size(), steps[k]);
  }
}

INSTANTIATE_TEST_SUITE_P(OneToFour, PlannedOnStreams, ::testing::Range(1, 5));

}  // namespace
}  // namespace plimsoll::runtime
