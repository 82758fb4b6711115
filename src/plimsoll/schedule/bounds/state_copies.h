// State that must travel: what every schedule within a budget copies out and in again, every step.
//
// Weights and moments are written to in every step. While a task runs, what it reads and makes of
// other things is in memory beside them; of state there is then at most what is left of the budget,
// and the rest is in host memory, where it came after it was written last and from where it comes
// before it is written next:
//
//   state 699 MiB, the largest task's activations 200 MiB, budget 537 MiB
//   362 MiB of state are away then: 362 MiB go out and 362 MiB come in
//
// No recomputing helps against that, and no order. Where it takes the bus longer than the step
// computes, it is the bound of any plan of these tasks. O(tasks + edges).
#pragma once

#include <algorithm>
#include <vector>

#include "plimsoll/base/units.h"
#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::schedule {

inline Bytes state_copies(const Workload& workload, Bytes budget) {
  // The source that it is a new version of, however many updates lie between; else itself.
  const auto root_of = [&](ValueId id) {
    while (workload.value(id).producer.valid() && workload.value(id).in_place &&
           workload.value(id).in_place->required)
      id = workload.value(id).in_place->input;
    return id;
  };
  std::vector<bool> is_state(workload.values.size(), false);  // by source
  Bytes state;
  for (std::size_t v = 0; v < workload.values.size(); ++v) {
    const ValueId root = root_of(ValueId(v));
    if (root == ValueId(v) || workload.value(root).producer.valid() || is_state[root.index()])
      continue;
    is_state[root.index()] = true;
    state += workload.value(root).bytes;
  }
  Bytes beside;
  for (const Task& task : workload.tasks) {
    Bytes held = task.scratch;
    for (const ValueId input : task.inputs) {
      if (!is_state[root_of(input).index()]) held += workload.value(input).bytes;
    }
    for (const ValueId output : task.outputs) {
      // what may lie over an input counts once
      if (!workload.value(output).in_place) held += workload.value(output).bytes;
    }
    beside = std::max(beside, held);
  }
  return std::max(state + beside - budget, Bytes(0));
}

}  // namespace plimsoll::schedule
