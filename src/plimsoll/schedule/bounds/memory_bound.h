// Memory bound: the proven smallest budget.
//
// At every task its inputs, outputs, scratch and everything that nothing can remove must be in
// memory at once; after the last task, everything that must be kept. No plan with these remedies
// can use less, in whatever order. O(tasks + edges).
#pragma once

#include <vector>

#include "plimsoll/base/units.h"
#include "plimsoll/schedule/remedies.h"
#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::schedule {

struct MemoryBound {
  Bytes bytes;
  TaskId task;                    // where so much is needed; none: the end of the step
  std::vector<ValueId> limiting;  // the tensors that are in memory there, largest first
};

MemoryBound memory_bound(const Workload& workload, const Remedies& remedies);

}  // namespace plimsoll::schedule
