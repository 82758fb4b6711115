// A trace as a timeline: a time step is an event, whatever its kind, so that numbers of events here
// are those of `plimsoll replay` and `plimsoll convert`.
//
// An allocation event begins an Allocation, its free ends it; what is never freed lives to the end.
// Blocks that were there before the recording are allocations of their own kind from time step 0. A
// free of an address nobody holds, and a second allocation at an address that is held, are counted
// and said in `notes`: a recording may be cut, and a report of a cut recording is better than none.
//
// Where an event has no name (PyTorch records none), its stack gives one: the innermost frame that
// is the user's own code, as "model.py:12 forward". That is its layer, too, and the file is the
// layer above it. Directories that all such files share are left out. The operator
// that ran before a free is the best a trace knows of a last reader.
//
// What the allocator reserved follows from segments; what lies outside it, no snapshot says. It
// becomes an allocation of its own where the caller knows what the device showed at its fullest
// (`in_use`), or its capacity when the recording has an out-of-memory event, which says what the
// driver had left.
//
// Above kMostAllocations the largest stay single; the rest are aggregated: one Allocation "small
// allocations, summed" per kind and memory for every stretch of time steps, and a note says so.
// Linear in events, except for choosing the largest.
#pragma once

#include "plimsoll/report/timeline.h"
#include "plimsoll/trace/event.h"

namespace plimsoll::report {

inline constexpr std::size_t kMostAllocations = 1'000'000;

struct TraceFacts {
  Bytes capacity;  // of the device; zero: not known
  Bytes in_use;    // of the device at its fullest, as its driver counts; zero: not known
  std::size_t most_allocations = kMostAllocations;
};

Timeline timeline_of(const trace::Trace& trace, std::string title, const TraceFacts& facts = {});

}  // namespace plimsoll::report
