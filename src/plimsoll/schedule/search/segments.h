// Segments: plans by cutting the forward half, as many as there are ways to cut it sensibly.
//
// On deep graphs of like blocks a search that looks at one value at a time takes long to find what
// everybody knows: keep the ends of segments, recompute the insides. So those plans are made
// directly, as starting points. Two numbers span them: how many segments (cut at about equal bytes,
// each cut moved to the cheapest place nearby, where least crosses it), and which values inside a
// segment stay nevertheless: those that take most time a byte to make, as many as the budget holds.
// The last segment is never dropped, its values are needed at once.
//
//   segments    peak if nothing inside stays      with the budget filled
//      8           7.1 GB  too much
//     20           4.4 GB  +33 %                   5.2 GB  +22 %
//     60           3.8 GB  +32 %                   5.2 GB  +23 %
//
// Worth it only where there is a forward and a backward half; elsewhere the plans are merely slow.
// Cost: one replay and link, O(tasks), per plan tried; about ten plans per number of segments.
#pragma once

#include <functional>

#include "plimsoll/schedule/search/action_list.h"
#include "plimsoll/schedule/search/problem.h"
#include "plimsoll/schedule/search/search_options.h"

namespace plimsoll::schedule {

// Offers the fastest plan within the budget for every number of segments on a ladder, the likely
// ones first, until `stop` says so; and of those above the budget, each that is the lowest so far.
void try_segments(const Problem& problem, Index first_backward, std::int64_t budget,
                  const SegmentOptions& options, const std::function<bool()>& stop,
                  const std::function<void(const ActionList&)>& offer);

}  // namespace plimsoll::schedule
