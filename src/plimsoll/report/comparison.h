// Two timelines side by side: what grew, what shrank, and which named parts explain the difference.
//
//   total after - total before
//     =   space between buffers      (arena - live bytes, after - before)
//       + same tensors, other size   (names alive at both peaks; rounding shows here)
//       + only in after
//       - only in before
//
// The sum is exact to the byte: nothing is left over to be called "other". Tensors are matched by
// name at the two peaks, equal names in order of size. Used for `plimsoll diff` (before, after) and
// for planned against measured (the plan, the trace of its run).
//
// Linear in allocations, plus sorting what is alive at the peaks.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/report/timeline.h"

namespace plimsoll::report {

struct ComparedBytes {
  std::string name;
  Bytes before;
  Bytes after;
  Bytes growth() const { return after - before; }
  bool operator==(const ComparedBytes&) const = default;
};

struct Part {
  std::string name;
  Bytes bytes;  // negative: shrank
  std::string detail;
};

struct Comparison {
  std::string before;
  std::string after;
  Bytes total_before;
  Bytes total_after;
  std::vector<Part> parts;               // sum: total_after - total_before
  std::vector<ComparedBytes> by_kind;    // at the peaks; "space between buffers" is the last
  std::vector<ComparedBytes> by_layer;   // at the peaks, largest change first
  std::vector<ComparedBytes> by_tensor;  // that changed, largest change first

  Bytes growth() const { return total_after - total_before; }
};

Comparison compare(const Timeline& before, const Timeline& after);

}  // namespace plimsoll::report
