#include "plimsoll/schedule/testing/wide_layers.h"

#include <algorithm>
#include <set>
#include <string>

#include "plimsoll/base/random.h"

namespace plimsoll::schedule {

Workload wide_layers(const WideLayers& shape) {
  Random random(shape.seed);
  Workload out;
  for (int t = 0; t < shape.tasks; ++t) {
    const int layer = t / shape.width;
    const int begin = std::max(0, layer - shape.back) * shape.width;
    const int end = layer * shape.width;
    std::set<int> inputs;
    while (static_cast<int>(inputs.size()) < std::min(shape.inputs, end - begin))
      inputs.insert(static_cast<int>(random.between(begin, end - 1)));
    Task task;
    Value value;
    value.name = task.name = "t" + std::to_string(t);
    task.seconds = static_cast<double>(random.between(1, 999));
    for (const int input : inputs) task.inputs.emplace_back(static_cast<std::size_t>(input));
    task.outputs = {ValueId(static_cast<std::size_t>(t))};
    value.bytes = Bytes(1024 * random.between(1, 1000));
    value.producer = TaskId(static_cast<std::size_t>(t));
    out.tasks.push_back(std::move(task));
    out.values.push_back(std::move(value));
  }
  return out;
}

}  // namespace plimsoll::schedule
