// Peak stack: the moment of most load is packed first, without a gap; all others around it.
//
// Graphs of large models often have one moment that is higher than any other: the loss, between the
// forward and the backward pass. A packing reaches the bound only if the bodies alive then lie on
// each other without a hole, and skylines, which fill time from everywhere at once, leave one of
// the size of a body. Here that stack is built first. Everything else has room to spare and is laid
// around it by skyline passes, to which the stack is an obstacle (skyline.h).
//
//            |d|             stack at the peak: a b c d, the longest lived at the bottom
//          |..c..|           the others go to the left and right of it, on its stairs
//      x |....b....| y
//     |.......a.........|
//
// How it is stacked decides how much space lies under overhangs: by how far bodies reach to the
// left and to the right of the peak, in several mixtures of the two, first as they are, then with
// noise around the mixture and the order of the others that were best.
//
// Rejected for random lifetimes: there many moments are nearly as high as the peak, and the others
// do not find places.
//
// Cost: one skyline pass for every stack, O(n log n). A packing only gets better. Plain models
// without fixed bodies; one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/pack/budget.h"
#include "plimsoll/pack/heuristics/skyline.h"
#include "plimsoll/pack/model/bodies.h"

namespace plimsoll::pack {

struct PeakStackOptions {
  std::int64_t target = 0;  // bytes: where to stop
  PassRules rules = {};     // of the passes that are careful
  std::uint64_t seed = 1;
};

// Improves `places` as far as the budget goes; true when it did.
bool stack_peak(const BodyModel& model, const PeakStackOptions& options, Budget& budget,
                std::vector<std::int64_t>& places);

}  // namespace plimsoll::pack
