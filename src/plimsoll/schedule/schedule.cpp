#include "plimsoll/schedule/schedule.h"

namespace plimsoll::schedule {

std::string_view name_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::kCompute:
      return "compute";
    case ActionKind::kRecompute:
      return "recompute";
    case ActionKind::kCopyOut:
      return "send_out";
    case ActionKind::kCopyIn:
      return "bring_in";
    case ActionKind::kEncode:
      return "encode";
    case ActionKind::kDecode:
      return "decode";
    case ActionKind::kDrop:
      return "drop";
  }
  return "unknown";
}

ScheduleCounts count(const Schedule& schedule) {
  ScheduleCounts counts;
  for (const Action& action : schedule.actions) {
    if (action.reads.empty() || action.kind == ActionKind::kDrop) {
      counts.recomputed += action.kind == ActionKind::kRecompute;
      continue;
    }
    const Bytes bytes = schedule.instances[action.reads.front().index()].bytes;
    if (action.kind == ActionKind::kRecompute) ++counts.recomputed;
    if (action.kind == ActionKind::kCopyOut) counts.copied_out += bytes;
    if (action.kind == ActionKind::kCopyIn) counts.copied_in += bytes;
    if (action.kind == ActionKind::kEncode) counts.encoded += bytes;
  }
  return counts;
}

}  // namespace plimsoll::schedule
