// The graph of a request: tasks, values, views and encodings, from the arrays of the C struct.
//
// Value ids stay as they are. Tasks are put into an order that can be run (of those that can,
// always the first of the request, so one that can be run is left alone). A view becomes a value of
// 0 bytes, and whoever reads it reads its base as well: that keeps the order of making and reading,
// and the base in memory.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/capi/request.h"
#include "plimsoll/plimsoll.h"

namespace plimsoll::capi {

// The arrays are hostile until read. Sets the workload, and what it has to do with the request's.
Status read_graph(const plimsoll_plan_request& request, Request& out);

}  // namespace plimsoll::capi
