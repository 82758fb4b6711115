// From the C struct to what the planner takes: plimsoll_plan_request -> Workload and FitOptions.
//
// The arrays are hostile until read: every index, flag and number is checked before it is used, and
// memory is linear in their lengths.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/capi/request.h"
#include "plimsoll/plimsoll.h"

namespace plimsoll::capi {

// The struct as this library knows it, from one that may be shorter or longer.
Result<plimsoll_plan_request> copy_of(const plimsoll_plan_request* request);

Result<Request> read_request(const plimsoll_plan_request& request);

}  // namespace plimsoll::capi
