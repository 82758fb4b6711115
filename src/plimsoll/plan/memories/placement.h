// Placement: in which memory every touch of a buffer is served, and what that costs in time.
//
// Per touch a level: 0 is device memory, k is the k-th of the profile's `memories`. Touches of one
// buffer that follow each other on one level above 0 form a *window*: the buffer has a place there
// from the first to the last of them. A window begins with a copy from device memory, unless the
// buffer is made in it, and ends with a copy to it, if something was written and is wanted later.
// `rest` cuts a window between two touches: the buffer leaves and comes back.
//
//   touches of x     0 1 . . . 1 1 1 . . 0        levels
//   window                     ███████████        copy in before, copy out behind if written
//
// evaluate() plays the step on three streams: operators, copies in, copies out. Operators take the
// roofline with the bytes of each memory at its rate; copies in begin as late as lets them end in
// time (so they hold their place briefly), one after the other; an operator waits for what it
// reads; copies out hold their place until they end. Copies beside operators slow those down by
// the profile's copy tax.
//
// The bytes of every level by step are exact for lists of lifetimes; packing may need more, and
// place_in_memories.h sees to that. O(steps + touches).
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/plan/memories/memory_traffic.h"

namespace plimsoll::plan {

struct Placement {
  std::vector<std::vector<std::uint8_t>> level;  // by buffer, by touch
  std::vector<std::vector<std::uint8_t>> rest;   // by buffer, by touch: leaves behind it
  bool operator==(const Placement&) const = default;
};

struct Window {
  std::int32_t buffer = 0;
  std::uint8_t level = 0;
  std::int32_t first = 0, last = 0;  // touches
  std::int32_t issue = 0;            // the step before which its copy in is given out
  std::int32_t release = 0;          // the first step at which its place is free again
  bool copies_in = false;
  bool copies_out = false;
};

struct Evaluated {
  double seconds = 0;
  std::vector<std::int64_t> most_bytes;  // by level above 0
  std::int64_t over_bytes = 0;           // sum over levels of what is too much
  std::vector<Window> windows;           // by buffer, then by touch
};

class PlacementModel {
 public:
  PlacementModel(const Plan& plan, MemoryTraffic traffic, const schedule::DeviceProfile& profile);

  const MemoryTraffic& traffic() const { return traffic_; }
  const schedule::DeviceProfile& profile() const { return profile_; }
  std::int64_t bytes(std::size_t buffer) const { return bytes_[buffer]; }
  std::uint8_t levels() const { return static_cast<std::uint8_t>(profile_.memories.size()); }
  // Where device memory is read only, what steps write must lie elsewhere, from first to last.
  bool must_leave(std::size_t buffer) const {
    return profile_.read_only && traffic_.buffers[buffer].written;
  }
  Placement all_home() const;
  // Lower `capacity` holds room back for the packer; by level above 0.
  Evaluated evaluate(const Placement& placement, const std::vector<std::int64_t>& capacity) const;
  std::vector<std::int64_t> capacities() const;
  double step_seconds(const Placement& placement, std::size_t step) const;
  double copy_seconds(const Window& window, bool out) const;
  // When steps begin if nothing is waited for; one more for the end.
  std::vector<double> starts(const Placement& placement) const;

 private:
  std::vector<Window> windows_of(const Placement& placement) const;

  MemoryTraffic traffic_;
  schedule::DeviceProfile profile_;
  std::vector<std::int64_t> bytes_;  // by buffer
};

}  // namespace plimsoll::plan
