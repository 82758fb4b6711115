#include "plimsoll/schedule/order.h"

#include <gtest/gtest.h>

#include "plimsoll/schedule/instances.h"

namespace plimsoll::schedule {
namespace {

// Two layers unrolled over three steps: the terms of both sums are made in turns.
//   x0 y0 x1 y1 x2 y2 sumx sumy, where y of a step reads x of the same step
Workload two_sums() {
  Workload out;
  const auto add = [&](std::vector<std::size_t> inputs) {
    const std::size_t index = out.tasks.size();
    Task task;
    for (std::size_t input : inputs) task.inputs.emplace_back(input);
    task.outputs = {ValueId(index)};
    out.tasks.push_back(task);
    Value value;
    value.bytes = Bytes(10);
    value.producer = TaskId(index);
    out.values.push_back(value);
  };
  add({});
  add({0});
  add({});
  add({2});
  add({});
  add({4});
  add({0, 2, 4});
  add({1, 3, 5});
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

}  // namespace
}  // namespace plimsoll::schedule
