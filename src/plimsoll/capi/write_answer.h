// From a schedule to the C struct: actions become steps, and steps that take views again are put
// in.
//
// A view lies where its base lies. When the base was dropped and recomputed, or copied in, a reader
// of the view needs it taken anew; the schedule knows nothing of that (a view is a value of 0 bytes
// there), so it is said here.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/capi/arena.h"
#include "plimsoll/capi/read_request.h"
#include "plimsoll/plimsoll.h"
#include "plimsoll/schedule/schedule.h"

namespace plimsoll::capi {

// What the pointers of the C struct point into.
struct Answer : plimsoll_plan_answer {
  std::string text;
  std::vector<plimsoll_step> all_steps;
  std::vector<plimsoll_instance> all_instances;
  std::vector<std::int64_t> all_step_instances;
  std::vector<std::int64_t> all_waits;
  std::vector<plimsoll_limit> all_limiting;
};

// `arena` may be null.
void write_steps(const Request& request, const schedule::Schedule& schedule, const Arena* arena,
                 Answer& answer);

}  // namespace plimsoll::capi
