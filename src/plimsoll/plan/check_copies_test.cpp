// Copies of freed, overwritten or wrong bytes: the verifier must find every one that is planted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "plimsoll/plan/check_plan.h"
#include "plimsoll/plan/make_plan.h"
#include "plimsoll/plan/testing/random_graph.h"
#include "plimsoll/schedule/fit.h"

namespace plimsoll::plan {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

bool copies(const PlanStep& step) {
  return step.kind == StepKind::kCopyOut || step.kind == StepKind::kCopyIn;
}

// The tightest plan of a random graph by swapping alone.
Plan swapping_plan(std::uint64_t seed) {
  const ir::Graph graph = random_graph(seed);
  const auto mapped = schedule::make_graph_workload(graph, {});
  EXPECT_TRUE(mapped) << mapped.error().message;
  schedule::FitOptions fit;
  fit.remedies = {.recompute = false, .swap = true};
  fit.deterministic = true;
  const auto fitted = schedule::task_by_task(mapped->workload, fit);
  EXPECT_TRUE(fitted && !fitted->empty());
  auto plan = make_plan(graph, *mapped, fitted->back().schedule, {});
  EXPECT_TRUE(plan) << plan.error().message;
  return *std::move(plan);
}

TEST(CheckCopies, CopiesFromOrToTheWrongPlaceAreFound) {
  int planted = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Plan plan = swapping_plan(seed);
    ASSERT_THAT(check_plan(plan).problems, IsEmpty()) << seed;
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      if (!copies(plan.steps[s])) continue;
      SCOPED_TRACE(testing::Message() << "seed " << seed << " step " << s);
      for (const bool source : {false, true}) {
        const auto& slots = source ? plan.steps[s].inputs : plan.steps[s].outputs;
        const PlanBuffer& right = plan.buffer(slots.front().buffer);
        for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
          const PlanBuffer& wrong = plan.buffers[b];
          if (wrong.arena != right.arena || wrong.offset == right.offset ||
              wrong.bytes < right.bytes)
            continue;
          Plan spoiled = plan;
          auto& spoiled_slots = source ? spoiled.steps[s].inputs : spoiled.steps[s].outputs;
          spoiled_slots.front() = {BufferId(b), Bytes(0)};
          EXPECT_THAT(check_plan(spoiled).problems, Not(IsEmpty()))
              << (source ? "from " : "to ") << wrong.name;
          ++planted;
        }
      }
    }
  }
  EXPECT_GT(planted, 100);
}

// A copy that does not wait races with whoever frees, overwrites or fills its bytes.
TEST(CheckCopies, CopiesThatDoNotWaitAreFound) {
  int planted = 0;
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Plan plan = swapping_plan(seed);
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      if (!copies(plan.steps[s]) || plan.steps[s].waits.empty()) continue;
      Plan spoiled = plan;
      spoiled.steps[s].waits.clear();
      ++planted;
      found += check_plan(spoiled).ok() ? 0 : 1;
    }
    // Nobody waits for any copy: whoever reads what came in is too early.
    Plan hasty = plan;
    bool waited = false;
    for (PlanStep& step : hasty.steps) {
      if (copies(step)) continue;
      waited |=
          std::erase_if(step.waits, [&](std::uint32_t w) { return copies(hasty.steps[w]); }) > 0;
    }
    if (waited) {
      EXPECT_THAT(check_plan(hasty).problems, Not(IsEmpty())) << seed;
    }
  }
  EXPECT_GT(planted, 25);
  // A few wait for all users of a buffer of which they take over other bytes.
  EXPECT_GE(100 * found, 99 * planted);
}

// Whoever takes over the bytes of what leaves, be it a kernel or a copy in, waits for the copy
// itself: no step stands in between that others would stop for.
TEST(CheckCopies, WhoTakesOverBytesOnTheirWayOutWaitsForThatCopy) {
  int kernels = 0, copies_in = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Plan plan = swapping_plan(seed);
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      EXPECT_NE(plan.steps[s].kind, StepKind::kDrop);
      for (std::size_t k = 0; k < plan.steps[s].waits.size(); ++k) {
        if (plan.steps[plan.steps[s].waits[k]].kind != StepKind::kCopyOut) continue;
        const bool reads_it = plan.steps[s].kind == StepKind::kCopyIn &&
                              plan.steps[s].value == plan.steps[plan.steps[s].waits[k]].value;
        if (reads_it) continue;
        (plan.steps[s].kind == StepKind::kCopyIn ? copies_in : kernels) += 1;
        Plan hasty = plan;
        hasty.steps[s].waits.erase(hasty.steps[s].waits.begin() + static_cast<std::ptrdiff_t>(k));
        EXPECT_THAT(check_plan(hasty).problems, Not(IsEmpty())) << seed << " step " << s;
      }
    }
  }
  EXPECT_GT(kernels, 5);
  EXPECT_GT(copies_in, 5);
}

// As plans were written before: the computation stops at a drop until the copy is done.
Plan with_a_drop_behind(Plan plan, std::size_t copy) {
  const auto at = static_cast<std::int32_t>(copy) + 1;
  PlanStep drop;
  drop.kind = StepKind::kDrop;
  drop.value = plan.steps[copy].value;
  drop.inputs = plan.steps[copy].inputs;
  drop.waits = {static_cast<std::uint32_t>(copy)};
  for (PlanStep& step : plan.steps) {
    for (std::uint32_t& wait : step.waits) wait += wait > copy ? 1 : 0;
  }
  plan.steps.insert(plan.steps.begin() + at, drop);
  for (PlanBuffer& buffer : plan.buffers) {
    if (buffer.lifetime.begin.value >= at) buffer.lifetime.begin = buffer.lifetime.begin + 1;
    if (buffer.lifetime.end.value > at) buffer.lifetime.end = buffer.lifetime.end + 1;
  }
  plan.predicted_seconds = 0;
  for (const PlanStep& step : plan.steps) plan.predicted_seconds += step.seconds;
  return plan;
}

TEST(CheckCopies, AnOlderPlanWhoseDropsWaitIsRightToo) {
  int dropped = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Plan plan = swapping_plan(seed);
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      if (plan.steps[s].kind != StepKind::kCopyOut) continue;
      EXPECT_THAT(check_plan(with_a_drop_behind(plan, s)).problems, IsEmpty()) << seed << " " << s;
      ++dropped;
    }
  }
  EXPECT_GT(dropped, 25);
}

TEST(CheckCopies, ACopyAfterItsSourceWasOverwrittenIsFound) {
  int planted = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const Plan plan = swapping_plan(seed);
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      if (plan.steps[s].kind != StepKind::kCopyOut) continue;
      const Slot from = plan.steps[s].inputs.front();
      const Interval<std::int64_t> bytes{
          place_of(plan, from).value,
          place_of(plan, from).value + plan.buffer(from.buffer).bytes.value};
      for (std::size_t later = s + 1; later < plan.steps.size(); ++later) {
        const auto& outputs = plan.steps[later].outputs;
        const bool over = std::any_of(outputs.begin(), outputs.end(), [&](const Slot& slot) {
          if (!slot.buffer.valid() || plan.buffer(slot.buffer).arena != 0) return false;
          const std::int64_t at = place_of(plan, slot).value;
          return Interval<std::int64_t>{at, at + 1}.meets(bytes);
        });
        if (!over) continue;
        // The copy runs behind the writer, and waits for it.
        Plan spoiled = plan;
        PlanStep copy = spoiled.steps[s];
        copy.waits = {static_cast<std::uint32_t>(later - 1)};
        spoiled.steps.erase(spoiled.steps.begin() + static_cast<std::ptrdiff_t>(s));
        spoiled.steps.insert(spoiled.steps.begin() + static_cast<std::ptrdiff_t>(later), copy);
        for (std::size_t t = s; t < spoiled.steps.size(); ++t) {
          if (t == later) continue;
          std::vector<std::uint32_t>& waits = spoiled.steps[t].waits;
          if (t < later) std::erase(waits, static_cast<std::uint32_t>(s));  // it comes later now
          for (std::uint32_t& wait : waits) {
            if (wait == s) {
              wait = static_cast<std::uint32_t>(later);
            } else if (wait > s && wait <= later) {
              --wait;
            }
          }
        }
        EXPECT_THAT(check_plan(spoiled).problems, Contains(HasSubstr("finds other bytes")))
            << "seed " << seed << " step " << s << " behind " << later;
        ++planted;
        break;
      }
    }
  }
  EXPECT_GT(planted, 10);
}

}  // namespace
}  // namespace plimsoll::plan
