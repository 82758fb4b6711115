#include "plimsoll/schedule/search/beam_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <tuple>

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

// Every task runs once and nothing is swapped or encoded: only the order is left to choose.
Workload only_orders(const WideLayers& shape) {
  Workload workload = wide_layers(shape);
  for (Task& task : workload.tasks) task.once = true;
  return workload;
}

struct Failure {
  ErrorCode code = ErrorCode::kUsage;
  Bytes smallest;
  std::string message;
};

Failure failure_of(const Workload& workload, Bytes budget, bool beam) {
  FitOptions options;
  options.deterministic = true;
  options.search.counted_rungs = 2;
  options.search.on.beam = beam;
  options.budget = budget;
  Failure out;
  options.on_none = [&](Bytes found) { out.smallest = found; };
  const auto fitted = fit(workload, options);
  EXPECT_FALSE(fitted);
  if (!fitted)
    std::tie(out.code, out.message) = std::tie(fitted.error().code, fitted.error().message);
  return out;
}

// No order needs so little, by trying them all; and the proven lower bound does not say so.
TEST(BeamOrder, AFailureNamesTheSmallestThereIs) {
  for (const std::uint64_t seed : {301, 305, 306, 308}) {
    SCOPED_TRACE(seed);
    const Workload workload =
        only_orders({.tasks = 8, .width = 3, .inputs = 2, .back = 2, .seed = seed});
    const Bytes lowest(lowest_peak(Problem(workload, Remedies{}, CopyRates{})));
    ASSERT_LT(memory_bound(workload, Remedies{}).bytes, lowest);
    const Failure failure = failure_of(workload, Bytes(lowest.value - 1), true);
    EXPECT_EQ(failure.code, ErrorCode::kNoAnswer);
    EXPECT_EQ(failure.smallest, lowest);
    EXPECT_NE(failure.message.find(fmt::format("smallest found needs {} bytes", lowest.value)),
              std::string::npos)
        << failure.message;
  }
}

// It comes as far as the beam does, where the other orders come less far.
TEST(BeamOrder, AFailureNamesTheSmallestThatWasFound) {
  const Workload workload = only_orders({.tasks = 40, .seed = 304});
  const Bytes budget = memory_bound(workload, Remedies{}).bytes;
  const Problem problem(workload, Remedies{}, CopyRates{});
  const Bytes beam(peak_of(problem, beam_order(problem, 64, never)));
  const Failure with = failure_of(workload, budget, true);
  EXPECT_EQ(with.code, ErrorCode::kNoAnswer);
  EXPECT_GT(with.smallest, budget);
  EXPECT_LE(with.smallest, beam);
  EXPECT_GT(failure_of(workload, budget, false).smallest, beam);
}

}  // namespace
}  // namespace plimsoll::schedule
