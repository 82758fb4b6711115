// Offsets in one arena for what a schedule keeps in device memory.
//
// A buffer is a chain of instances that take over each other's memory, or the scratch of one run.
// The list of actions is the order in which memory changes hands (schedule/schedule.h), so places
// in it are times for the packer, whatever the streams do. Work is counted, not timed: the same
// schedule gets the same offsets everywhere.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/schedule/schedule.h"
#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::capi {

struct Arena {
  Bytes bytes;
  std::vector<std::int64_t> instances;  // the offset of each, -1 on the host
  std::vector<std::int64_t> scratch;    // of each action, -1 for none
};

Result<Arena> place(const schedule::Workload& workload, const schedule::Schedule& schedule,
                    std::int64_t alignment);

}  // namespace plimsoll::capi
