// Several compute streams: who runs where, who waits for whom, and who may use whose memory.
//
// On one stream two buffers may share bytes when their lifetimes do not meet. On several there is no one
// line of time: a step may reuse a buffer's bytes only if everybody who touched them is known to be done,
// that is, an ancestor of the step (the rule of SOMAS). Ancestors are kept as vector clocks, how many steps
// of each stream are done when a step starts, so the whole relation is steps × streams numbers and no
// matrix of pairs.
//
//   stream 0   a ───────▶ c ──────▶ e         e knows {0: a c, 1: b d}: it may write over x
//   stream 1        b ─x─▶ d ──┘wait          c knows {0: a, 1: none}: it may not, whatever the clock says
//
// How: steps keep their order in the list. Each goes to the stream on which it can start first, given when
// its data is ready and when the stream is free (list scheduling with the plan's predicted seconds). A step
// waits for those of its data that its stream does not know to be done; waits that others imply are left
// out. Then the arena is packed again under the clocks. No wait is added for the sake of memory.
//
// Bounds: buffers that are alive together in list order meet under the clocks too, so the load of the list
// remains a lower bound; the proof holds the larger of it and the packer's own.
//
// Refuses plans that already use several streams (swapped ones) and more than kMostStreams.
// Cost: O(slots + steps × streams) and one packing.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/plan/plan.h"

namespace plimsoll::plan {

inline constexpr int kMostStreams = 6;  // two of the eight are for copies

struct StreamOptions {
  int streams = 2;
  bool two_ended = false;
  bool sharing = true;
  double pack_seconds = 0.05;  // counted work, as in make_plan.h
};

Status spread_over_streams(Plan& plan, const StreamOptions& options);

}  // namespace plimsoll::plan
