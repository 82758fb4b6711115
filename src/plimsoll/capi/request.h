// A request of the C interface as the planner takes it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

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
  std::optional<double> slowdown;  // the least memory for that much more time
  double unit = 1;                 // of the costs that are searched with, in the request's
  std::int64_t alignment = 0;
};

}  // namespace plimsoll::capi
