// Remedies: the memory techniques that a plan may use, and the one it uses in one place.
//
// Two enums say everything that the searches decide and do:
//   Remedy      a decision about one gap, the stretch between two uses of a value (below)
//   ActionKind  what then happens in the list of actions: schedule.h
#pragma once

#include <cstdint>

namespace plimsoll::schedule {

struct Remedies {
  bool recompute = true;
  bool swap = false;
  bool encode = false;
  bool lossy = false;  // lossy encodings too
  // Operators in parts. Whoever makes the workload sees to it (rewrite/split_rows.h): a schedule
  // knows tasks, and parts are tasks.
  bool split = false;

  bool operator==(const Remedies&) const = default;
};

enum class Remedy : std::uint8_t {
  kUndecided,  // whatever is cheapest when bytes are short
  kKeep,       // stays in device memory
  kDrop,       // freed, and recomputed if it is read again
  kSwap,       // copied out to host memory, and copied in again
  kEncode,     // held in a smaller form, and decoded again
};

}  // namespace plimsoll::schedule
