// A trace as an account: a tick is an event that changes memory or runs an operator.
//
// An allocation opens a band, its free closes it; what is never freed lives to the end. Blocks that
// were there before the recording are bands of their own kind from tick 0. A free of an address
// nobody holds, and a second allocation at an address that is held, are counted and said in
// `notes`: a recording may be cut, and a report of a cut recording is better than none.
//
// Where an event has no name (PyTorch records none), its stack gives one: the innermost frame that
// is the user's own code. The operator that ran before a free is the best a trace knows of a last
// reader.
//
// What the allocator reserved follows from segments; what lies outside it, no snapshot says. It
// becomes a band of its own where the caller knows what the device showed at its fullest
// (`in_use`), or its capacity when the recording has an out-of-memory event, which says what the
// driver had left.
//
// Above kMostBands allocations the largest stay single; the rest become bands "n small
// allocations", one per kind and memory for every stretch of ticks, and a note says so. Linear in
// events, except for choosing the largest.
#pragma once

#include "plimsoll/report/account.h"
#include "plimsoll/trace/event.h"

namespace plimsoll::report {

inline constexpr std::size_t kMostBands = 1'000'000;

struct TraceFacts {
  Bytes capacity;  // of the device; zero: not known
  Bytes in_use;    // of the device at its fullest, as its driver counts; zero: not known
  std::size_t most_bands = kMostBands;
};

Account account_of(const trace::Trace& trace, std::string title, const TraceFacts& facts = {});

}  // namespace plimsoll::report
