#include "plimsoll/schedule/search/order.h"

#include <gtest/gtest.h>

#include "plimsoll/schedule/testing/training_graphs.h"

namespace plimsoll::schedule {
namespace {

void add_task(Workload& out, std::vector<std::size_t> inputs) {
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
