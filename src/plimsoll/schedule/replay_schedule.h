// The independent checker of schedule files: it replays the steps of a file on the graph of the
// file, and says what is held when.
//
// It shares no code with what makes schedules, nor with verify_schedule.h, which sees a schedule
// before it is written: this sees what a reader of the file sees. It knows for every value where it
// is (on the device, encoded, on the host) and finds, or names what is wrong:
//   1. every input of a node is on the device when the node runs, and a node runs at least once;
//      more than once only where it may be recomputed;
//   2. what is copied, encoded or dropped is there; what is made is not there already; only what
//      may be swapped is;
//   3. what must be kept is on the device at the end;
//   4. the peaks and the budget that the file promises hold, and its seconds are the sum of its
//      steps. With copies beside the computation the sum is a lower bound, and so it is checked.
//
// A run whose node may overwrite an input, and that is followed by the drop of that input, takes
// over its memory. A host copy lives from its send_out to the last bring_in of it.
//
// O(steps + inputs). The first thing that is wrong ends the replay.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/base/interval.h"
#include "plimsoll/schedule/schedule_file.h"

namespace plimsoll::schedule {

// Bytes that one value holds in one form for a stretch of the steps.
struct HeldValue {
  ValueId value;
  Form form = Form::kDevice;
  Bytes bytes;
  Interval<Step> life;  // the step at `end` does not need it any more
  std::int32_t made_at = 0;
  std::int32_t last_read = -1;  // -1: nobody reads it
};

struct ScheduleReplay {
  std::vector<std::string> problems;
  Bytes peak;  // on the device, scratch included
  Bytes host_peak;
  double seconds = 0;           // of all steps but copies
  bool copies = false;          // there are some, beside the computation
  std::vector<HeldValue> held;  // in the order they were made
  std::vector<double> step_seconds;

  bool ok() const { return problems.empty(); }
};

ScheduleReplay replay_schedule(const ScheduleFile& file);

}  // namespace plimsoll::schedule
