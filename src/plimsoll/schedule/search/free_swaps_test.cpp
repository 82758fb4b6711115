#include "plimsoll/schedule/search/free_swaps.h"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "plimsoll/schedule/fit.h"
#include "plimsoll/schedule/search/action_list.h"
#include "plimsoll/schedule/search/schedule_optimizer.h"
#include "plimsoll/schedule/testing/training_graphs.h"
#include "plimsoll/schedule/verify_schedule.h"

namespace plimsoll::schedule {
namespace {

constexpr Remedies kSwap{.recompute = false, .swap = true};
// A copy of what training_graphs.h calls a value takes about as long as a task.
constexpr CopyRates kCopies{1, 1, 0};

struct Filled {
  Schedule schedule;
  std::size_t swaps = 0;
};

// Everything kept, but for what can be away for nothing at a share of its peak.
Filled fill(const Workload& workload, const CopyRates& copies, int percent, std::uint64_t seed) {
  const Problem problem(workload, kSwap, copies);
  Problem own = problem;
  for (Index v = 0; v < own.values; ++v) {
    own.encoding[at(v)] = kSwapForm;
    own.encoded_bytes[at(v)] = 0;
  }
  Retention plan(own, given_sequence(problem).order);
  plan.set_limit(plan.peak() * percent / 100);
  Random random(seed);
  const std::vector<FreeSwap> swaps = free_swaps(problem, plan, random, FreeSwapOptions{});
  settle(swaps, own, plan);
  EXPECT_TRUE(plan.possible());
  return {link(problem, with_copies(own, plan.action_list())), swaps.size()};
}

TEST(FreeSwaps, CostNoTimeAndGiveMemoryOnGraphsOfManyShapes) {
  int lower = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    const Workload workload = seed % 4 == 0   ? transformer(1 + static_cast<int>(seed % 7))
                              : seed % 4 == 1 ? random_chain(5 + static_cast<int>(seed % 20))
                                              : random_layered(60, 120, seed);
    const CopyRates copies{0.2 * static_cast<double>(seed), 0.3 * static_cast<double>(seed), 0};
    const Schedule kept = keep_all(workload);
    const Filled filled = fill(workload, copies, 60 + static_cast<int>(seed), seed);
    const auto verdict = verify_schedule(workload, filled.schedule, kept.peak_bytes, copies);
    ASSERT_TRUE(verdict) << verdict.error().message;
    EXPECT_NEAR(verdict->seconds, kept.seconds, 1e-9 * kept.seconds);
    lower += filled.schedule.peak_bytes < kept.peak_bytes;
  }
  EXPECT_GE(lower, 20);
}

// source m is read by the last task alone, which writes its new version over it.
Workload with_state(bool swappable) {
  Workload workload = unit_chain(6);
  for (Task& task : workload.tasks) task.seconds = 10;
  for (Value& value : workload.values) value.swappable = false;
  const std::size_t state = workload.values.size();
  const TaskId update(workload.tasks.size());
  workload.values.resize(state + 2);
  for (const std::size_t v : {state, state + 1}) {
    workload.values[v].bytes = Bytes(4);
    workload.values[v].swappable = swappable;
    workload.values[v].keep = v > state;
  }
  workload.values[state].name = "state";
  workload.values[state + 1].name = "new state";
  workload.values[state + 1].producer = update;
  workload.values[state + 1].in_place = InPlace{ValueId(state), true};
  Task task;
  task.name = "update";
  task.once = true;
  task.seconds = 10;
  task.inputs = {ValueId(state - 1), ValueId(state)};
  task.outputs = {ValueId(state + 1)};
  workload.tasks.push_back(task);
  Task last;
  last.name = "last";
  last.seconds = 10;
  last.inputs = {ValueId(state - 1)};
  workload.values.push_back({});
  workload.values.back().name = "end";
  workload.values.back().bytes = Bytes(1);
  workload.values.back().producer = TaskId(workload.tasks.size());
  last.outputs = {ValueId(state + 2)};
  workload.tasks.push_back(last);
  return workload;
}

TEST(FreeSwaps, StartAndEndStateOnTheHostWhereBothItsCopiesAreHidden) {
  const Workload workload = with_state(true);
  ASSERT_TRUE(verify(workload)) << verify(workload).error().message;
  const Schedule kept = keep_all(workload);
  const Filled filled = fill(workload, kCopies, 50, 1);
  EXPECT_EQ(filled.swaps, 2U);
  const auto verdict = verify_schedule(workload, filled.schedule, kept.peak_bytes, kCopies);
  ASSERT_TRUE(verdict) << verdict.error().message;
  EXPECT_DOUBLE_EQ(verdict->seconds, kept.seconds);
  EXPECT_EQ(verdict->peak_bytes, kept.peak_bytes - Bytes(4));
  // One copy takes longer than the step after the update.
  EXPECT_EQ(fill(workload, {0.3, 1, 0}, 50, 1).swaps, 0U);
  EXPECT_EQ(fill(with_state(false), kCopies, 50, 1).swaps, 0U);
}

// No budget is served worse by two techniques than by one of them, and some is served better than
// by either: what copies free for nothing is not recomputed.
TEST(FreeSwaps, AddUpWithRecomputation) {
  const Workload workload = transformer(4);
  const Schedule kept = keep_all(workload);
  double bytes = 0;
  for (const Value& value : workload.values) bytes += static_cast<double>(value.bytes.value);
  const double rate = 0.25 * bytes / kept.seconds;  // in the time of a step, a quarter of all
  const auto seconds = [&](Remedies remedies, int percent) {
    FitOptions options;
    options.remedies = remedies;
    options.copies = {rate, rate, 0};
    ScheduleOptimizer optimizer(workload, options);
    const Effort effort = counted_effort(optimizer.problem(), options.search);
    const auto found = optimizer.search(Bytes(kept.peak_bytes.value * percent / 100), effort, 1);
    return found ? found->schedule.seconds : std::numeric_limits<double>::infinity();
  };
  int better = 0;
  for (const int percent : {90, 75, 60}) {
    SCOPED_TRACE(percent);
    const double one = std::min(seconds({.recompute = true}, percent), seconds(kSwap, percent));
    const double both = seconds({.recompute = true, .swap = true}, percent);
    EXPECT_LE(both, one * (1 + 1e-9));
    better += both < one * 0.995;
  }
  EXPECT_GE(better, 1);
}

}  // namespace
}  // namespace plimsoll::schedule
