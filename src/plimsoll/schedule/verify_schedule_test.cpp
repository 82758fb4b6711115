#include "plimsoll/schedule/verify_schedule.h"

#include <gtest/gtest.h>

#include "plimsoll/schedule/fit.h"
#include "plimsoll/schedule/testing/training_graphs.h"

namespace plimsoll::schedule {
namespace {

Fit swapping_fit(const Workload& workload) {
  FitOptions options;
  options.budget = Bytes(keep_all(workload).peak_bytes.value * 6 / 10);
  options.remedies = {false, true, false, false};
  options.deadline_seconds = 0;
  auto fitted = fit(workload, options);
  return fitted ? std::move(*fitted) : Fit{};
}

Status verifier(const Workload& workload, const Schedule& schedule) {
  const auto verdict = verify_schedule(workload, schedule, Bytes::max(), {});
  return verdict ? Status{} : forward(verdict);
}

TEST(ScheduleVerifier, AcceptsWhatThePlannerMakes) {
  const Workload workload = small_resnet(3);
  const Schedule schedule = swapping_fit(workload).schedule;
  ASSERT_GT(count(schedule).copied_out, Bytes(0));
  EXPECT_TRUE(verifier(workload, schedule));
}

TEST(ScheduleVerifier, RejectsBytesOverTheBudget) {
  const Workload workload = unit_chain(5);
  const Schedule schedule = keep_all(workload);
  EXPECT_TRUE(verify_schedule(workload, schedule, schedule.peak_bytes, {}));
  EXPECT_FALSE(verify_schedule(workload, schedule, schedule.peak_bytes - Bytes(1), {}));
}

TEST(ScheduleVerifier, RejectsEveryMissingWait) {
  const Workload workload = small_resnet(3);
  const Schedule right = swapping_fit(workload).schedule;
  int waits = 0;
  for (std::size_t a = 0; a < right.actions.size(); ++a) {
    // A send-out that starts too early, a drop or a fetch that does not wait: all are races.
    if (right.actions[a].waits.empty()) continue;
    Schedule wrong = right;
    wrong.actions[a].waits.clear();
    ++waits;
    const bool harmless = verifier(workload, wrong).has_value();
    EXPECT_FALSE(harmless) << "action " << a << " (" << name_of(right.actions[a].kind) << ")";
  }
  EXPECT_GT(waits, 3);
}

TEST(ScheduleVerifier, RejectsAnyActionLeftOut) {
  const Workload workload = small_resnet(2);
  const Schedule right = keep_all(workload);
  for (std::size_t a = 0; a < right.actions.size(); ++a) {
    if (right.actions[a].kind == ActionKind::kDrop) continue;
    Schedule wrong = right;
    wrong.actions.erase(wrong.actions.begin() + static_cast<std::ptrdiff_t>(a));
    EXPECT_FALSE(verifier(workload, wrong)) << a;
  }
}

TEST(ScheduleVerifier, RejectsADropBeforeTheLastReader) {
  const Workload workload = unit_chain(4);
  Schedule wrong = keep_all(workload);
  for (std::size_t a = 1; a < wrong.actions.size(); ++a) {
    if (wrong.actions[a].kind != ActionKind::kDrop) continue;
    std::swap(wrong.actions[a], wrong.actions[a - 1]);
    break;
  }
  EXPECT_FALSE(verifier(workload, wrong));
}

TEST(ScheduleVerifier, RejectsASecondRunOfATaskThatMayRunOnce) {
  Workload workload = unit_chain(8);
  FitOptions options;
  options.budget = Bytes(5);
  options.deadline_seconds = 0;
  const auto fitted = fit(workload, options);
  ASSERT_TRUE(fitted);
  ASSERT_GT(count(fitted->schedule).recomputed, 0);
  for (Task& task : workload.tasks) task.once = true;
  EXPECT_FALSE(verifier(workload, fitted->schedule));
}

}  // namespace
}  // namespace plimsoll::schedule
