#include "plimsoll/store/form_choice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "plimsoll/base/random.h"

namespace plimsoll::store {
namespace {

using Weights = std::vector<std::vector<FormPlace>>;

struct Choice {
  std::vector<std::size_t> places;
  std::uint64_t bytes = 0;
  double seconds = 0;
};
Choice standing(const Weights& weights) {
  Choice out;
  for (const auto& places : weights) {
    out.places.push_back(0);
    out.bytes += places[0].bytes;
    out.seconds += places[0].seconds;
  }
  return out;
}
void take(const FormStep& step, Choice& choice) {
  choice.places[step.weight] = step.place;
  choice.bytes -= step.saved;
  choice.seconds += step.seconds;
}

// Every choice there is.
double least_seconds(const Weights& weights, std::uint64_t most_bytes, std::size_t from = 0,
                     std::uint64_t bytes = 0) {
  if (from == weights.size())
    return bytes <= most_bytes ? 0 : std::numeric_limits<double>::infinity();
  double out = std::numeric_limits<double>::infinity();
  for (const FormPlace& place : weights[from])
    out = std::min(
        out, place.seconds + least_seconds(weights, most_bytes, from + 1, bytes + place.bytes));
  return out;
}

Weights random_weights(Random& random) {
  Weights out(static_cast<std::size_t>(random.between(1, 5)));
  for (auto& places : out) {
    places.push_back({1000, 1 + random.uniform()});
    for (std::int64_t f = random.below(5); f > 0; --f)
      places.push_back(
          {static_cast<std::uint64_t>(random.between(100, 999)), 0.5 + 3 * random.uniform()});
  }
  return out;
}

TEST(FormChoice, TakesWhatIsSmallerAndFasterFirst) {
  const Weights weights = {{{377, 1.0}, {100, 0.8}, {94, 1.9}, {53, 1.4}}};
  const auto steps = steps_to_smaller_forms(weights);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].place, 1u);
  EXPECT_LT(steps[0].seconds, 0);
  EXPECT_EQ(steps[1].place, 3u) << "94 bytes save little for much";
}

TEST(FormChoice, HasNoStepToAPlaceOfAsManyBytes) {
  const Weights weights = {{{100, 1.0}, {100, 0.1}, {200, 0.0}}, {}, {{0, 1.0}, {0, 0.0}}};
  EXPECT_TRUE(steps_to_smaller_forms(weights).empty());
}

TEST(FormChoice, EveryPrefixIsTheFastestChoiceOfItsBytes) {
  Random random(23);
  for (int round = 0; round < 2000; ++round) {
    SCOPED_TRACE(round);
    const Weights weights = random_weights(random);
    Choice choice = standing(weights);
    bool slower = false;  // from here on, every further step costs time
    for (const FormStep& step : steps_to_smaller_forms(weights)) {
      slower = slower || step.seconds >= 0;
      EXPECT_TRUE(!slower || step.seconds >= 0);
      take(step, choice);
      double bytes = 0, seconds = 0;
      for (std::size_t w = 0; w < weights.size(); ++w) {
        bytes += static_cast<double>(weights[w][choice.places[w]].bytes);
        seconds += weights[w][choice.places[w]].seconds;
      }
      ASSERT_EQ(bytes, static_cast<double>(choice.bytes));
      ASSERT_NEAR(seconds, choice.seconds, 1e-9);
      if (slower) {
        ASSERT_NEAR(least_seconds(weights, choice.bytes), choice.seconds, 1e-9);
      }
    }
  }
}

TEST(FormChoice, StoppingWhereItFitsCostsAtMostTheLastStepMore) {
  Random random(24);
  int decided = 0;
  for (int round = 0; round < 2000; ++round) {
    SCOPED_TRACE(round);
    const Weights weights = random_weights(random);
    Choice choice = standing(weights);
    const auto budget =
        static_cast<std::uint64_t>(random.below(static_cast<std::int64_t>(choice.bytes) + 1));
    const double best = least_seconds(weights, budget);
    double last = 0;
    for (const FormStep& step : steps_to_smaller_forms(weights)) {
      if (choice.bytes <= budget && step.seconds >= 0) break;
      last = std::max(0.0, step.seconds);
      take(step, choice);
    }
    ASSERT_EQ(choice.bytes <= budget, best < std::numeric_limits<double>::infinity());
    if (choice.bytes > budget) continue;
    ++decided;
    ASSERT_LE(choice.seconds, best + last + 1e-9);
  }
  EXPECT_GT(decided, 500);
}

}  // namespace
}  // namespace plimsoll::store
