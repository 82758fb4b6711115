#include "plimsoll/schedule/search/beam_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "plimsoll/base/random.h"
#include "plimsoll/schedule/fit.h"
#include "plimsoll/schedule/search/order.h"
#include "plimsoll/schedule/testing/layered_network.h"
#include "plimsoll/schedule/testing/training_graphs.h"
#include "plimsoll/schedule/testing/wide_layers.h"
#include "plimsoll/schedule/verify_schedule.h"

namespace plimsoll::schedule {
namespace {

bool never() {
  return false;
}

std::int64_t peak_of(const Problem& problem, const std::vector<Index>& order) {
  const auto bytes = bytes_over_time(problem, order);
  return *std::max_element(bytes.begin(), bytes.end());
}

// Over all orders, by trying them.
std::int64_t lowest_peak(const Problem& problem) {
  std::vector<Index> order = given_sequence(problem).order;
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  do {
    if (is_runnable(problem, order)) lowest = std::min(lowest, peak_of(problem, order));
  } while (std::next_permutation(order.begin(), order.end()));
  return lowest;
}

TEST(BeamOrder, AWideOneIsExact) {
  int lower = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    const Workload workload =
        wide_layers({.tasks = 8, .width = 3, .inputs = 2, .back = 2, .seed = seed});
    const Problem problem(workload, Remedies{}, CopyRates{});
    const std::vector<Index> order = beam_order(problem, 1000, never);
    ASSERT_TRUE(is_runnable(problem, order));
    EXPECT_EQ(peak_of(problem, order), lowest_peak(problem));
    lower += peak_of(problem, order) < peak_of(problem, given_sequence(problem).order);
  }
  EXPECT_GT(lower, 5);
}

// Updates wait for every reader of the old version, and lie in its place.
TEST(BeamOrder, OrdersOfTrainingGraphsCanBeRun) {
  for (const Workload& workload :
       {random_chain(15), small_resnet(3), small_unet(2), transformer(2)}) {
    const Problem problem(workload, Remedies{}, CopyRates{});
    const std::vector<Index> order = beam_order(problem, 16, never);
    ASSERT_TRUE(is_runnable(problem, order));
    EXPECT_LE(peak_of(problem, order), peak_of(problem, given_sequence(problem).order));
  }
}

TEST(BeamOrder, IsLowerThanWhatNeighbourSwapsFindOnWideLayers) {
  for (const std::uint64_t seed : {301, 302}) {
    SCOPED_TRACE(seed);
    const Workload workload = wide_layers({.tasks = 200, .seed = seed});
    const Problem problem(workload, Remedies{}, CopyRates{});
    const std::int64_t given = peak_of(problem, given_sequence(problem).order);
    Random random(1);
    const std::int64_t swapped = peak_of(
        problem,
        lower_order(problem, given_sequence(problem).order, given * 8 / 10, 200 * 400, random));
    const std::int64_t beam = peak_of(problem, beam_order(problem, 100, never));
    EXPECT_LE(beam, swapped);
    EXPECT_LT(beam, given * 9 / 10);
  }
}

TEST(BeamOrder, StopsWhenToldTo) {
  const Problem problem(wide_layers({.tasks = 50}), Remedies{}, CopyRates{});
  int asked = 0;
  EXPECT_TRUE(beam_order(problem, 8, [&] { return ++asked > 10; }).empty());
  EXPECT_EQ(asked, 11);
}

// What could not be fitted says how far it came: at least as far as reordering alone.
TEST(BeamOrder, AFailureNamesTheSmallestThatWasFound) {
  const Workload workload = wide_layers({.tasks = 40, .seed = 304});
  const Problem problem(workload, Remedies{}, CopyRates{});
  const std::int64_t beam = peak_of(problem, beam_order(problem, 64, never));
  FitOptions options;
  options.deterministic = true;
  options.budget = Bytes(beam / 2);
  Bytes smallest;
  options.on_none = [&](Bytes found) { smallest = found; };
  const auto fitted = fit(workload, options);
  ASSERT_FALSE(fitted);
  EXPECT_EQ(fitted.error().code, ErrorCode::kNoAnswer);
  EXPECT_GT(smallest.value, options.budget.value);
  EXPECT_LE(smallest.value, beam);
  EXPECT_NE(fitted.error().message.find(fmt::format("{}", smallest.value)), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::schedule
