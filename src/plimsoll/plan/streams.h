// Several compute streams: who runs where, who waits for whom, and who may use whose memory.
//
// On one stream two buffers may share bytes when their lifetimes do not meet. On several there is
// no one line of time: a step may reuse a buffer's bytes only if everybody who touched them is
// known to be done, that is, an ancestor of the step (the rule of SOMAS). Ancestors are kept as
// vector clocks, how many steps of each stream are done when a step starts, so the whole relation
// is steps × streams numbers and no matrix of pairs.
//
//   stream 0   a ───────▶ c ──────▶ e         e knows {0: a c, 1: b d}: it may write over x
//   stream 1        b ─x─▶ d ──┘wait c knows {0: a, 1: none}: it may not, whatever the clock says
//
// How: steps keep their order in the list. Each goes to the stream on which it can start first,
// given when its data is ready and when the stream is free (list scheduling with the plan's
// predicted seconds). A step waits for those of its data that its stream does not know to be done;
// waits that others imply are left out. Data is compared byte by byte, so steps that fill different
// parts of one buffer do not wait for each other. Memory is then had in one of two ways:
//
//   packed again   no wait is added for the sake of memory; the arena is packed under the clocks
//                  and may come out above what one stream needs
//   places kept    offsets stay, and a step also waits for all who touched the bytes of its buffers
//                  before; the arena stays as it is, and streams run side by side only where memory
//                  allows it
//
// Without a budget plans are packed again. With one, the faster of the two that is inside it is
// taken; one always is, because kept places need no more than before. Plans that swap keep their
// places; their copies go to the two streams behind the last compute stream.
//
// Collectives (ops/collective/collective.h) have a stream of their own, the last, so that ranks
// talk while they compute: a plan with any is spread even with one compute stream.
//
// Bounds: the proof holds the larger of the load of the list and the heaviest antichain of the
// clocks (pack/bounds/antichain.h): buffers that are alive together in list order meet under the
// clocks too.
//
// Refuses more than kMostStreams. Cost: O(slots + steps × streams) and one packing.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/plan/plan.h"

namespace plimsoll::plan {

inline constexpr int kMostStreams = 6;  // two of the eight are for copies, or one for collectives

struct StreamOptions {
  int streams = 2;
  bool two_ended = false;
  bool sharing = true;
  double pack_seconds = 0.05;  // counted work, as in make_plan.h
};

// `plan` runs on one compute stream.
Status spread_over_streams(Plan& plan, const StreamOptions& options);

// What no plan on several compute streams can be faster than, given that for one: at best they
// share the computations evenly, and the collectives of `plan` run beside them.
double bound_on_streams(const Plan& plan, int streams, double on_one);

}  // namespace plimsoll::plan
