#include "plimsoll/schedule/search/order.h"

#include <gtest/gtest.h>

#include "plimsoll/schedule/testing/training_graphs.h"

namespace plimsoll::schedule {
namespace {

void add_task(Workload& out, const std::vector<std::size_t>& inputs) {
  const std::size_t index = out.tasks.size();
  Task task;
  for (std::size_t input : inputs) task.inputs.emplace_back(input);
  task.outputs = {ValueId(index)};
  out.tasks.push_back(task);
  Value value;
  value.bytes = Bytes(10);
  value.producer = TaskId(index);
  out.values.push_back(value);
}

// Forward, step by step: 0 and 1, 2 and 3, 4 and 5 are the lower and the upper layer. Backward: 6
// to 11, the last step and the upper layer first. Then the sum of the upper layer, that of the
// lower.
Workload unrolled() {
  Workload out;
  for (const auto& inputs : std::vector<std::vector<std::size_t>>{{},
                                                                  {0},
                                                                  {0},
                                                                  {1, 2},
                                                                  {2},
                                                                  {3, 4},
                                                                  {5},
                                                                  {4, 6},
                                                                  {3, 6},
                                                                  {2, 7, 8},
                                                                  {1, 8},
                                                                  {0, 9, 10},
                                                                  {6, 8, 10},
                                                                  {7, 9, 11}}) {
    add_task(out, inputs);
  }
  return out;
}

// Two layers unrolled over three steps: the terms of both sums are made in turns.
//   x0 y0 x1 y1 x2 y2 sumx sumy, where y of a step reads x of the same step
Workload two_sums() {
  Workload out;
  add_task(out, {});
  add_task(out, {0});
  add_task(out, {});
  add_task(out, {2});
  add_task(out, {});
  add_task(out, {4});
  add_task(out, {0, 2, 4});
  add_task(out, {1, 3, 5});
  return out;
}

TEST(SinkOrder, FinishesOneSumBeforeTheTermsOfTheNext) {
  const Problem problem(two_sums(), Remedies{}, CopyRates{});
  EXPECT_EQ(sink_order(problem), (std::vector<Index>{0, 2, 4, 6, 1, 3, 5, 7}));
}

TEST(SinkOrder, IsRunnableOnRandomGraphs) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Problem problem(random_layered(60, 150, seed), Remedies{}, CopyRates{});
    EXPECT_TRUE(is_runnable(problem, sink_order(problem)));
  }
}

// Two layers unrolled over three steps, h = f(h of the step before, h of the layer below) and back:
// the backward half ends with one sum for each layer.
TEST(MirrorOrder, GoesLayerByLayerForwardAsWellAsBackward) {
  const Problem problem(unrolled(), Remedies{}, CopyRates{});
  const std::vector<Index> order = mirror_order(problem, 6);
  EXPECT_TRUE(is_runnable(problem, order));
  EXPECT_EQ(std::vector<Index>(order.begin(), order.begin() + 6),
            (std::vector<Index>{0, 2, 4, 1, 3, 5}));
}

// The backward half of two layers over three steps: gates of the upper layer and of the lower,
// which reads what the upper one hands down. Each layer has two weights, whose terms are added up
// step by step. The sinks stand in the order of weights: both layers' first, then both layers'
// second.
struct TwoWeights {
  Workload workload;
  std::vector<Index> upper_gates, upper_readers, lower_gates;

  TwoWeights() {
    std::vector<std::size_t> forward, sums(4, kNone);
    for (std::size_t step = 0; step < 3; ++step)
      forward.push_back(add(step == 0 ? std::vector<std::size_t>{} : std::vector{step - 1}, 40));
    std::size_t upper = kNone, lower = kNone;
    for (const std::size_t h : {forward[2], forward[1], forward[0]}) {
      upper = add(upper == kNone ? std::vector{h} : std::vector{h, upper}, 40);
      upper_gates.push_back(static_cast<Index>(upper));
      const std::size_t down = add({upper}, 10);
      lower = add(lower == kNone ? std::vector{down} : std::vector{down, lower}, 40);
      lower_gates.push_back(static_cast<Index>(lower));
      for (std::size_t w = 0; w < 4; ++w) add_term(w % 2 == 0 ? upper : lower, sums[w]);
    }
    for (const std::size_t sum : sums) {
      add({sum}, 10);
      workload.values.back().keep = true;
    }
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  std::size_t add(const std::vector<std::size_t>& inputs, std::int64_t bytes) {
    add_task(workload, inputs);
    workload.values.back().bytes = Bytes(bytes);
    workload.tasks.back().seconds = 1;
    return workload.tasks.size() - 1;
  }

  void add_term(std::size_t gates, std::size_t& sum) {
    const std::size_t term = add({gates}, 10);
    if (gates == static_cast<std::size_t>(upper_gates.back()))
      upper_readers.push_back(static_cast<Index>(term));
    sum = sum == kNone ? term : add({sum, term}, 10);
  }
};

TEST(MirrorOrder, FinishesAllWeightsOfALayerBeforeTheLayerBelow) {
  const TwoWeights net;
  const Problem problem(net.workload, Remedies{}, CopyRates{});
  const Sequence mirrored(problem, mirror_order(problem, 3));
  EXPECT_TRUE(is_runnable(problem, mirrored.order));
  for (const Index reader : net.upper_readers) {
    for (const Index gates : net.lower_gates)
      EXPECT_LT(mirrored.position[at(reader)], mirrored.position[at(gates)]);
  }
}

TEST(MirrorOrder, IsRunnableOnRandomGraphsCutAnywhere) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Problem problem(random_layered(60, 150, seed), Remedies{}, CopyRates{});
    EXPECT_TRUE(is_runnable(problem, mirror_order(problem, static_cast<Index>(seed))));
  }
}

TEST(Renumbered, IsTheSameProblemInTheGivenOrderOfItsTasks) {
  const Problem problem(random_layered(60, 150, 1), Remedies{}, CopyRates{});
  const Sequence sequence(problem, list_order(problem));
  const Problem other = renumbered(problem, sequence);
  EXPECT_EQ(bytes_over_time(problem, sequence.order),
            bytes_over_time(other, given_sequence(other).order));
}

}  // namespace
}  // namespace plimsoll::schedule
