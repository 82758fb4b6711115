// What two bodies demand of each other: which differences of their places are forbidden.
//
// Two pieces that meet forbid x_b - x_a in the open interval (lo_a - hi_b, hi_a - lo_b). Arena ends
// forbid more: when a is a front body and b a back body, everything below hi_a - lo_b. The union
// over all pairs of pieces, merged, is all that greedy placement and the ordering search need to
// know, so gaps, windows, groups, classes, clocks and ends look the same to them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "plimsoll/pack/model/bodies.h"

namespace plimsoll::pack {

// begin < difference < end is forbidden.
using Forbidden = Interval<std::int64_t>;

// Appends the forbidden differences x_b - x_a, unmerged.
inline void append_forbidden(const BodyModel& model, std::size_t a, std::size_t b,
                             std::vector<Forbidden>& out) {
  const Body& body_a = model.bodies[a];
  const Body& body_b = model.bodies[b];
  if (body_a.first >= body_b.last || body_b.first >= body_a.last) return;
  for (const Piece& pa : model.pieces_of(a)) {
    for (const Piece& pb : model.pieces_of(b)) {
      if (!pieces_meet(model, pa, pb)) continue;
      Forbidden range{pa.lo - pb.hi, pa.hi - pb.lo};
      if (body_a.end == ArenaEnd::kFront && body_b.end == ArenaEnd::kBack) range.begin = -kLargest;
      if (body_a.end == ArenaEnd::kBack && body_b.end == ArenaEnd::kFront) range.end = kLargest;
      out.push_back(range);
    }
  }
}

// Sorted and disjoint; ranges that only touch stay apart, for the difference between them is
// allowed.
inline void merge_forbidden(std::vector<Forbidden>& ranges) {
  std::sort(ranges.begin(), ranges.end());
  std::size_t kept = 0;
  for (const Forbidden& range : ranges) {
    if (kept > 0 && range.begin < ranges[kept - 1].end) {
      ranges[kept - 1].end = std::max(ranges[kept - 1].end, range.end);
    } else {
      ranges[kept++] = range;
    }
  }
  ranges.resize(kept);
}

}  // namespace plimsoll::pack
