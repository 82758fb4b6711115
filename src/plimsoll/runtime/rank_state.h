// All ranks begin with rank 0's weights and optimizer state.
//
// Plans place them side by side by dtype (plan/buckets.h), so one broadcast serves all of a dtype;
// elsewhere each tensor is a message. Random counters differ from rank to rank afterwards, so that
// examples of different ranks are dropped out differently. What ranks have parts of is not sent.
#pragma once

#include "plimsoll/dist/communicator.h"
#include "plimsoll/runtime/executor.h"

namespace plimsoll::runtime {

Status share_state(Executor& executor, dist::Communicator& communicator);

}  // namespace plimsoll::runtime
