#include "plimsoll/schedule/search/segments.h"

#include <gtest/gtest.h>

#include "plimsoll/schedule/search/replay.h"
#include "plimsoll/schedule/testing/training_graphs.h"

namespace plimsoll::schedule {
namespace {

std::vector<std::int64_t> peaks_offered(const Workload& workload, std::int64_t budget) {
  const Problem problem(workload, Remedies{}, CopyRates{});
  std::vector<std::int64_t> out;
  try_segments(
      problem, first_backward_task(workload, problem), budget, {}, [] { return false; },
      [&](const ActionList& list) { out.push_back(link(problem, list).peak_bytes.value); });
  return out;
}

TEST(Segments, OffersEachThatIsTheLowestSoFarWhereNoneIsWithinTheBudget) {
  for (int layers = 12; layers <= 25; ++layers) {
    SCOPED_TRACE(layers);
    const std::vector<std::int64_t> peaks = peaks_offered(random_chain(layers), 1);
    ASSERT_FALSE(peaks.empty());
    for (std::size_t i = 1; i < peaks.size(); ++i) EXPECT_LT(peaks[i], peaks[i - 1]);
  }
}

TEST(Segments, OffersNothingAboveTheBudgetAfterOneWithinIt) {
  const Workload workload = random_chain(25);
  const std::int64_t budget = peaks_offered(workload, 1).back();
  const std::vector<std::int64_t> peaks = peaks_offered(workload, budget);
  ASSERT_FALSE(peaks.empty());
  bool within = false;
  for (const std::int64_t peak : peaks) {
    EXPECT_TRUE(!within || peak <= budget);
    within = within || peak <= budget;
  }
  EXPECT_TRUE(within);
}

}  // namespace
}  // namespace plimsoll::schedule
