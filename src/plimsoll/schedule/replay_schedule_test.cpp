#include "plimsoll/schedule/replay_schedule.h"

#include <gtest/gtest.h>

#include "plimsoll/base/random.h"
#include "plimsoll/schedule/fit.h"
#include "plimsoll/schedule/verify_schedule.h"
#include "plimsoll/schedule/workload/dag_file.h"

namespace plimsoll::schedule {
namespace {

// Three nodes as in docs/formats/dag.md: x is read twice, so it may be recomputed in between.
std::string small_file(const std::string& steps, int peak = 5136, double seconds = 0.005) {
  return fmt::format(
      R"({{"schema":1,"kind":"plimsoll schedule","peak_bytes":{},"host_peak_bytes":4096,
        "seconds":{},"nodes":[
          {{"name":"a","seconds":0.001,"bytes":4096}},
          {{"name":"b","seconds":0.002,"bytes":1024,"scratch":512,"inputs":["a"]}},
          {{"name":"c","seconds":0.001,"bytes":16,"inputs":["a","b"],"keep":true}}],
        "steps":[{}]}})",
      peak, seconds, steps);
}

constexpr const char* kRight =
    R"({"compute":"a"},{"compute":"b"},{"drop":"a"},{"compute":"a"},{"compute":"c"},)"
    R"({"drop":"a"},{"drop":"b"})";

std::string problem_of(const std::string& text) {
  const auto file = read_schedule(text);
  if (!file) return "unreadable: " + file.error().message;
  const ScheduleReplay replay = replay_schedule(*file);
  return replay.ok() ? "right" : replay.problems.front();
}

TEST(ReplaySchedule, ConfirmsWhatTheFilePromises) {
  const auto file = read_schedule(small_file(kRight, 5632));
  ASSERT_TRUE(file) << file.error().message;
  const ScheduleReplay replay = replay_schedule(*file);
  ASSERT_TRUE(replay.ok()) << replay.problems.front();
  EXPECT_EQ(replay.peak, Bytes(4096 + 1024 + 512));
  EXPECT_DOUBLE_EQ(replay.seconds, 0.005);
  ASSERT_EQ(replay.held.size(), 4U);
  EXPECT_EQ(replay.held[0].life, (Interval<Step>{Step(0), Step(2)}));
  EXPECT_EQ(replay.held[0].last_read, 1);
  EXPECT_EQ(replay.held[3].life, (Interval<Step>{Step(4), Step(7)}));
}

TEST(ReplaySchedule, NamesWhatIsWrong) {
  const std::pair<std::string, const char*> faults[] = {
      {small_file(kRight), "the file says a peak of 5136 bytes, its steps need 5632"},
      {small_file(kRight, 5632, 0.004), "the file says 0.004 seconds, its steps take 0.005"},
      {small_file(R"({"compute":"b"})"), "step 0: 'b' needs 'a' on the device"},
      {small_file(R"({"compute":"a"},{"compute":"a"})"), "step 1: makes 'a', which is there"},
      {small_file(R"({"drop":"a"})"), "step 0: drops the value 'a', which is not there"},
      {small_file(R"({"compute":"a"})"), "'b' never ran"},
      {small_file(R"({"bring_in":"a"})"), "needs 'a' on the host"},
      {small_file(R"({"compute":"a"},{"encode":"a"})"), "'a' has no encoding 0"},
      {small_file(R"({"compute":"a"},{"compute":"b"},{"compute":"c"},{"drop":"c"})"),
       "'c', which must be kept"},
      {small_file(R"({"compute":"z"})"), "there is no node 'z'"},
      {small_file(R"({"conpute":"a"})"), "expected one of compute, drop"},
      {small_file(R"({"compute":"a","drop":"a"})"), "expected one of compute, drop"},
      {small_file("3"), "step 0: must be an object"},
      {R"({"kind":"plimsoll schedule","steps":[]})", "plan the graph again"},
  };
  for (const auto& [text, words] : faults)
    EXPECT_NE(problem_of(text).find(words), std::string::npos) << text << "\n" << problem_of(text);
}

TEST(ReplaySchedule, ABudgetThatIsExceededIsAProblem) {
  std::string text = small_file(kRight, 5632);
  text.insert(1, R"("budget_bytes":5631,)");
  EXPECT_NE(problem_of(text).find("the budget is 5631 bytes, the steps need 5632"),
            std::string::npos);
}

// Whatever the searches come to, with every technique, reads back as they promised. Budgets are a
// tenth of the way above what any plan needs: further up another order is enough, and nothing is
// copied.
TEST(ReplaySchedule, AgreesWithThePlannerOnRandomGraphs) {
  int decided = 0;
  int with_copies = 0;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    Random dice(seed);
    std::string nodes;
    for (int i = 0; i < 16; ++i) {
      std::string inputs;
      std::string more = dice.below(9) == 0 ? R"(,"keep":true)" : "";
      for (int k = 1; k <= 3 && k * k <= i; ++k) {
        if (dice.below(2) == 0) continue;
        if (inputs.empty() && dice.below(2) == 0)
          more += fmt::format(R"(,"in_place":{})", i - k * k);
        inputs += fmt::format("{}{}", inputs.empty() ? "" : ",", i - k * k);
      }
      nodes += fmt::format(
          R"({}{{"name":"n{}","seconds":{},"bytes":{},"scratch":{},"inputs":[{}]{},
             "encodings":[
               {{"name":"x","bytes":{},"encode_seconds":0.001,"decode_seconds":0.001}},
               {{"name":"y","bytes":{},"encode_seconds":0.001,"decode_seconds":0.001}}]}})",
          i == 0 ? "" : ",", i, 0.01 * static_cast<double>(1 + dice.below(9)), 1000,
          dice.below(100), inputs, more, 500, 300);
    }
    const auto workload = read_dag(R"({"nodes":[)" + nodes + "]}");
    ASSERT_TRUE(workload) << workload.error().message;
    FitOptions how;
    how.remedies = {
        .recompute = true, .swap = seed % 2 == 0, .encode = seed % 3 == 0, .lossy = false};
    how.deterministic = true;
    how.search.counted_rungs = 10;
    how.threads = 1;
    const Schedule kept = keep_all(*workload);
    const Bytes least = memory_bound(*workload, how.remedies).bytes;
    how.budget = Bytes(least.value + (kept.peak_bytes.value - least.value) / 10);
    const auto fitted = fit(*workload, how);
    const Schedule& schedule = fitted ? fitted->schedule : kept;
    const auto file = read_schedule(schedule_to_json(*workload, schedule));
    ASSERT_TRUE(file) << file.error().message;
    const ScheduleReplay replay = replay_schedule(*file);
    ASSERT_TRUE(replay.ok()) << replay.problems.front();
    EXPECT_EQ(replay.peak, schedule.peak_bytes);
    decided += fitted.has_value();
    with_copies += replay.copies;
    if (how.remedies.swap) {
      ASSERT_TRUE(fitted);
      EXPECT_TRUE(replay.copies);
      EXPECT_TRUE(verify_schedule(*workload, schedule, how.budget, how.copies));
    }
  }
  EXPECT_GE(decided, 5);
  EXPECT_EQ(with_copies, 3);
}

}  // namespace
}  // namespace plimsoll::schedule
