// What a plan says about itself, computed again: lifetimes, uses, names, arenas, proof and time.
//
// The replay (check_plan.h) shows that a plan computes the right thing; it never looks at these
// fields, and people do: reports draw lifetimes, `optimal` ends a search for something smaller,
// `predicted_seconds` decides between plans. A file may say anything, so everything that follows
// from the steps is recomputed from them:
//
//   first, end     0 for what holds a source, else the first step that touches the buffer; the
//                  number of steps for what holds a result or state at the end, else the step that
//                  drops it, else one past the last that touches it
//   bytes          what the values in it take, rounded up to 64; of scratch and compressed forms
//                  only their makers know
//   arenas         exactly as high as the highest buffer in them
//   load_bytes     most bytes alive at any step, by those lifetimes
//   lower_bound    at least that, at most what can be proven here: the same on one stream, on
//                  several the heaviest set of buffers of which none is out of another's way by
//                  clocks of our own. The packer names that set (pack/bounds/antichain.h) and is
//                  not believed: each two of its members are asked.
//   optimal        the arena is exactly the lower bound
//   use, value,    of the graph's value that the first write puts there, or for scratch of the step
//   name           that works in it
//   predicted_seconds   the sum of the steps on one stream. On several not below the longest chain
//                  of steps and waits, and not above that and a handover for each step; where
//                  copies run beside the computation they slow it at a rate that only the device's
//                  profile knows, so that there the upper limit is four times the sum.
//
// Not recomputed, because only their maker can know them: the seconds of single steps (estimates;
// finite and not negative), the environment (`run` compares it with the machine), the budget (the
// arena may not be above it).
//
// Needs a plan whose structure and replay were found right. Cost: n log n in the slots; with
// several streams and a bound above the peak live bytes, a maximum flow with counted work, and the
// square of the buffers alive at its peak.
#pragma once

#include <vector>

#include "plimsoll/plan/check_structure.h"

namespace plimsoll::plan {

// `held_at_end` marks the buffers that hold a result, or the state
// that the next step reads, when the last step is done.
void check_claims(const Plan& plan, const std::vector<bool>& held_at_end, Problems& problems);

}  // namespace plimsoll::plan
