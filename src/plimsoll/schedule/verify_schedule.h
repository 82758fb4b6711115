// The verifier of schedules. It calls no function of what makes them: it knows the plain data of
// Workload and Schedule, and the copy rates.
//
// It replays the list once and proves, or names what is wrong:
//   1. every task's first run is there exactly once, later runs only of tasks that may run again;
//   2. every read is of an instance of the right value, in the right form, alive, and finished
//      before the reader starts on *every* interleaving of the streams (vector clocks, not luck);
//   3. nothing is dropped or overwritten before its last user has finished;
//   4. memory that is reused was given back before: an action that makes a device instance happens
//      after every drop that stands before it, so the bytes of the list are the bytes of the run;
//   5. bytes at every place of the list, scratch and copies in flight included, within the budget;
//   6. what must be kept is there at the end, sources where they started;
//   7. seconds are those of the workload and the copy rates; the makespan follows from them.
//
// Quadratic nowhere: O(actions + reads + waits).
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/schedule/schedule.h"
#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::schedule {

struct Verdict {
  Bytes peak_bytes;
  Bytes host_peak_bytes;
  double seconds = 0;
};

// Fails with kInternal: a wrong schedule is our own fault.
Result<Verdict> verify_schedule(const Workload& workload, const Schedule& schedule, Bytes budget,
                                const CopyRates& copies);

}  // namespace plimsoll::schedule
