// What an allocator counts, at the granularity PyTorch's memory_stats() has.
//
// A Tally is PyTorch's {current, peak, allocated, freed}; freed is allocated - current. Each is
// kept for requests up to 1 MiB (small), above (large) and both together.
#pragma once

#include <cstdint>

#include "plimsoll/base/units.h"

namespace plimsoll::memory {

struct Tally {
  std::int64_t current = 0;
  std::int64_t peak = 0;
  std::int64_t allocated = 0;

  void add(std::int64_t amount) {
    current += amount;
    allocated += amount;
    if (current > peak) peak = current;
  }
  void subtract(std::int64_t amount) { current -= amount; }
  std::int64_t freed() const { return allocated - current; }
  void reset_peak() { peak = current; }
  void reset_totals() { allocated = current; }
};

struct SizeClassTally {
  Tally blocks;
  Tally bytes;  // rounded
  Tally requested;

  void add(std::int64_t size, std::int64_t asked) {
    blocks.add(1);
    bytes.add(size);
    requested.add(asked);
  }
  void subtract(std::int64_t size, std::int64_t asked) {
    blocks.subtract(1);
    bytes.subtract(size);
    requested.subtract(asked);
  }
};

struct AllocatorStatistics {
  SizeClassTally all;
  SizeClassTally small;
  SizeClassTally large;
  Tally reserved_bytes;  // physical, aliases once
  Tally spilled_bytes;   // of slabs that are host memory
  Tally slabs;           // physical handles or device allocations
  Tally pending_bytes;   // freed, but another stream may still use them
  Bytes idle_bytes{0};   // in free blocks
  std::int64_t idle_blocks = 0;
  Bytes largest_idle{0};
  std::int64_t device_allocations = 0;  // physical handles created
  std::int64_t device_frees = 0;
  std::int64_t slabs_remapped = 0;  // handles moved to where they were needed
  Bytes bytes_remapped{0};
  std::int64_t mappings = 0;      // map calls, new handles and moved ones
  std::int64_t stream_waits = 0;  // waits between streams that lending caused
  std::int64_t retries = 0;       // times the device refused and the ladder was walked
  std::int64_t out_of_memory = 0;
  std::int64_t slow_allocations = 0;  // not served by a magazine or the stream's own free blocks
};

}  // namespace plimsoll::memory
