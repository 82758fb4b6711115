#include "plimsoll/schedule/workload/cost_unit.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plimsoll/schedule/fit.h"
#include "plimsoll/schedule/schedule_file.h"
#include "plimsoll/schedule/workload/dag_file.h"

namespace plimsoll::schedule {
namespace {

// A ladder of nodes, each read by the next and by its mirror image, as in a training step.
Workload ladder(double unit) {
  std::string nodes;
  constexpr int kHalf = 12;
  for (int i = 0; i < 2 * kHalf; ++i) {
    std::string inputs = i == 0 ? "" : fmt::format("{}", i - 1);
    if (i >= kHalf) inputs += fmt::format(",{}", 2 * kHalf - 1 - i);
    if (i == kHalf) inputs = fmt::format("{}", kHalf - 1);
    nodes += fmt::format(R"({}{{"seconds":{},"bytes":{},"inputs":[{}]}})", i == 0 ? "" : ",",
                         unit * (1 + i % 5), 100 + 7 * (i % 4), inputs);
  }
  return read_dag(fmt::format(R"({{"nodes":[{}]}})", nodes)).value();
}

TEST(CostUnit, CostsLikeSecondsStayAsTheyAre) {
  Workload workload = ladder(0.25);
  CopyRates copies;
  const double before = workload.tasks[3].seconds;
  EXPECT_EQ(take_out_unit(workload, copies), 1);
  EXPECT_EQ(workload.tasks[3].seconds, before);
  EXPECT_EQ(copies, CopyRates{});
}

TEST(CostUnit, ScalesCostsAndRatesAlikeAndExactly) {
  Workload workload = ladder(1.6e12);
  CopyRates copies;
  const double unit = take_out_unit(workload, copies);
  EXPECT_GT(unit, 1e12);
  EXPECT_EQ(workload.tasks[2].seconds * unit, 3 * 1.6e12);
  EXPECT_LT(workload.tasks[4].seconds, 1);
  EXPECT_EQ(copies.out_bytes_per_second, CopyRates{}.out_bytes_per_second * unit);
  EXPECT_EQ(copies.latency_seconds, CopyRates{}.latency_seconds / unit);
}

// The plan is the same whatever the costs are counted in, up to the largest and smallest there are.
TEST(CostUnit, PlansDoNotDependOnTheUnit) {
  std::string first;
  for (const int exponent : {0, 40, 500, 980, -40, -500, -980}) {
    const double unit = std::ldexp(1.0, exponent);
    Workload workload = ladder(unit);
    FitOptions how;
    how.deterministic = true;
    how.search.counted_rungs = 10;
    how.threads = 1;
    const double scaled = take_out_unit(workload, how.copies);
    const Schedule kept = keep_all(workload);
    how.budget = Bytes(kept.peak_bytes.value * 7 / 10);
    const auto fitted = fit(workload, how);
    ASSERT_TRUE(fitted) << exponent << ": " << fitted.error().message;
    EXPECT_TRUE(std::isfinite(fitted->schedule.seconds * scaled));
    EXPECT_GT(fitted->schedule.seconds * scaled, kept.seconds * scaled);
    std::string steps = schedule_to_json(workload, fitted->schedule);
    steps.erase(0, steps.find("\"steps\""));
    if (first.empty()) first = steps;
    EXPECT_EQ(steps, first) << "2^" << exponent;
  }
}

TEST(CostUnit, CostsThatNobodyCanAddUpAreRefused) {
  const auto most = read_dag(R"({"nodes":[{"seconds":1e300}]})");
  EXPECT_TRUE(most) << most.error().message;
  const auto beyond = read_dag(R"({"nodes":[{"seconds":9e299},{"seconds":9e299}]})");
  ASSERT_FALSE(beyond);
  EXPECT_NE(beyond.error().message.find("choose a larger unit"), std::string::npos);
  EXPECT_FALSE(read_dag(R"({"nodes":[{"seconds":-1}]})"));
}

}  // namespace
}  // namespace plimsoll::schedule
