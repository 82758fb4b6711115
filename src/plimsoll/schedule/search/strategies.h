// The classic strategies, by name: the baselines people know.
//
//   none         everything stays until its last reader
//   sqrt         the forward half is cut into √n segments: what crosses a cut stays, what is inside
//                is dropped and recomputed, segment by segment, when the backward half first asks
//                for it. On n equal layers that holds about 2·√n of them for one extra forward
//                pass.
//   segments:K   the same with K segments
//   blocks       the same with one segment per Task::block
//   drop-cheap   values of tasks marked `cheap` (batch norm, activation, pooling) are dropped and
//                recomputed where the backward half asks; convolutions and products stay
//   encode       every activation that the backward half reads and that is offered an encoding
//                waits in the smallest from its last reader in the forward half to its first in the
//                backward half
//
// None of them takes a budget: they give what they give, and fit() is measured against them.
#pragma once

#include <string_view>

#include "plimsoll/base/result.h"
#include "plimsoll/schedule/schedule.h"
#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::schedule {

// kUsage for a name that is none of the above, or for `blocks` where no task has one.
Result<Schedule> run_strategy(const Workload& workload, std::string_view name);

}  // namespace plimsoll::schedule
