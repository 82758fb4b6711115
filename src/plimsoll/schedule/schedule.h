// Schedule: what happens when, in one step. The list of actions that fit() decided on.
//
// Actions speak of *instances*: an instance is one materialisation of a value in one form (as it
// is, encoded, or on the host). A recomputed or fetched value is a new instance of the same value,
// so "is this read right" is a question about one instance and one place in the list.
//
//   value x   instance 0 (device)  made by compute a, read by b, dropped
//             instance 1 (host)    made by a copy-out of instance 0
//             instance 2 (device)  made by a copy-in of instance 1, read by c, dropped
//
// Three streams run side by side: compute, copy-out, copy-in. On one stream actions run in list
// order; across streams an action waits for the actions it names. The list order is also the order
// in which memory changes hands:
//   - an instance occupies its bytes from the action that makes it up to its drop, in list order;
//   - every drop is on the compute stream and waits for all users of what it drops;
//   - every action that makes a device instance happens after all drops that stand before it.
// So the bytes really in use never exceed what walking the list says, however the streams race.
//
// Scratch of a task is alive during its action only. A host instance counts in host bytes.
// An instance that `takes_over` another lies in the same memory: making it ends the other one
// (which then has no drop of its own) and adds no bytes.
//
// Plain data. The independent verifier is verify_schedule.h.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plimsoll/base/interval.h"
#include "plimsoll/base/units.h"
#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::schedule {

using InstanceId = Id<struct InstanceTag>;
using ActionId = Id<struct ActionTag>;

enum class Form : std::uint8_t { kDevice, kEncoded, kHost };

struct Instance {
  ValueId value;
  std::uint32_t copy = 0;  // 0 for the first materialisation of this value, then counting
  Form form = Form::kDevice;
  std::uint8_t encoding = 0;  // index into the value's encodings when kEncoded
  Bytes bytes;
  InstanceId takes_over;
  // Places in the list: [made, dropped). Sources start at 0; what is never dropped ends at the size
  // of the list. The action at `begin` already needs the memory, the one at `end` does not.
  Interval<Step> lifetime;

  bool operator==(const Instance&) const = default;
};

// What can happen, in the words of every stage: the searches list these (search/action_list.h), a
// Schedule has them with instances and streams, a plan (plan/plan.h) with buffers and offsets. What
// was decided about one gap between two uses is a Remedy (remedies.h).
enum class ActionKind : std::uint8_t {
  kCompute,    // the first run of a task
  kRecompute,  // any later run
  kCopyOut,    // device -> host
  kCopyIn,     // host -> device
  kEncode,     // device -> encoded
  kDecode,     // encoded -> device
  kDrop,       // the instance's memory is free from here on
};

enum class Stream : std::uint8_t { kCompute, kCopyOut, kCopyIn };

struct Action {
  ActionKind kind = ActionKind::kCompute;
  Stream stream = Stream::kCompute;
  TaskId task;                    // of kCompute and kRecompute
  std::vector<InstanceId> reads;  // of kDrop: what is dropped
  std::vector<InstanceId> writes;
  std::vector<ActionId> waits;  // earlier actions on other streams
  double seconds = 0;

  bool operator==(const Action&) const = default;
};

struct Schedule {
  std::vector<Action> actions;
  std::vector<Instance> instances;
  std::vector<InstanceId> at_start;  // sources, on the device or on the host

  // What the planner says of it; verify_schedule() measures the same for itself.
  Bytes peak_bytes;  // device, scratch included
  Bytes host_peak_bytes;
  double seconds = 0;  // makespan over the three streams

  bool operator==(const Schedule&) const = default;
};

std::string_view name_of(ActionKind kind);

struct ScheduleCounts {
  std::int64_t recomputed = 0;  // actions
  Bytes copied_out;
  Bytes copied_in;
  Bytes encoded;  // bytes before encoding
};
ScheduleCounts count(const Schedule& schedule);

}  // namespace plimsoll::schedule
