// Sections: time reduced to the moments that matter.
//
// A section is a maximal set of intervals alive together. Sweep time with deaths before births (the
// intervals are half-open); a section closes at the first death after a birth. Two intervals
// overlap exactly when their section ranges do, and there are at most as many sections as
// intervals.
//
//   [0,3) [3,9) [0,9)  ->  2 sections; the intervals cover [0,1) [1,2) [0,2)
//
// Times that are dense (a range of at most 8n) are sorted by counting: O(n); others in n log n.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plimsoll/base/interval.h"
#include "plimsoll/pack/model/problem.h"

namespace plimsoll::pack {

struct Sections {
  std::int32_t count = 0;
  std::vector<Interval<std::int32_t>> spans;  // one per interval
};

// None of the intervals may be empty.
Sections cut_sections(std::span<const Interval<std::int64_t>> times);

// Intervals on a line of buffers such that disjoint ones never meet under the clocks: buffers are
// lined up by the sum of `ready`; each reaches to the last place whose buffer might need it gone.
std::vector<Interval<std::int64_t>> conservative_lifetimes(const Clocks& clocks);

}  // namespace plimsoll::pack
