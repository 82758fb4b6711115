// From the C struct to what the planner takes: plimsoll_plan_request -> Workload and FitOptions.
//
// The arrays are hostile until read: every index, flag and number is checked before it is used, and
// memory is linear in their lengths.
//
// Value ids stay as they are. Tasks are put into an order that can be run (of those that can,
// always the first of the request, so one that can be run is left alone). A view becomes a value of
// 0 bytes, and whoever reads it reads its base as well: that keeps the order of making and reading,
// and the base in memory.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/plimsoll.h"
#include "plimsoll/schedule/fit.h"
#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::capi {

struct Request {
  schedule::Workload workload;
  schedule::FitOptions fit;
  std::vector<std::int64_t> given;  // the request's number of each task
  std::vector<ValueId> base;        // of each value that is a view, else none
  std::vector<std::vector<std::int64_t>>
      encodings;  // the request's number of each encoding of a value
  bool budgeted = false;
  double unit = 1;  // of the costs that are searched with, in the request's
  std::int64_t alignment = 0;
};

// The struct as this library knows it, from one that may be shorter or longer.
Result<plimsoll_plan_request> copy_of(const plimsoll_plan_request* request);

Result<Request> read_request(const plimsoll_plan_request& request);

}  // namespace plimsoll::capi
