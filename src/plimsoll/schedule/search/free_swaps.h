// FreeSwaps: what can wait in host memory without anything waiting for it.
//
// A copy takes long, and a recomputation of the same bytes often takes less; but a copy costs no
// time at all while its engine would stand idle. So swaps are not bought one by one at the price of
// their copies: the idle time of the two engines is filled with them, and what is then still over
// the budget is left to be recomputed. The two remedies add up.
//
//   compute    | a makes x | b | c | d | ........ | y | z reads x |
//   copy out               [== x ==]
//   copy in                                     [== x ==]
//   x away                         [- - - - - - ]             boundaries [begin, end)
//
// A value leaves after its last use before a gap and is away from where the first hole of the
// engine that is long enough ends; it comes back in the last hole before its next use. A source
// that is written over (the state of an optimizer) may start and end on the host: it comes in
// before its update, and its new version goes out after it.
//
// The holes are filled in the order of a score: how much of what is over the budget lies within the
// gap, and how dear it would be to recompute instead. `noise` shuffles it, for another try.
// O(values log values + their gaps within the excess). Deterministic in the random numbers.
#pragma once

#include <vector>

#include "plimsoll/base/random.h"
#include "plimsoll/schedule/search/retention.h"
#include "plimsoll/schedule/search/search_options.h"

namespace plimsoll::schedule {

// Away at the boundaries of the gap: from the first on, where that is 0, and up to the end of the
// step, where it ends behind the last.
struct FreeSwap {
  Index value = kNoIndex;
  Retention::Gap gap;
};

// For a plan that is over the limit of its Retention; `problem` has the swappable values.
std::vector<FreeSwap> free_swaps(const Problem& problem, const Retention& plan, Random& random,
                                 const FreeSwapOptions& options);

// Makes them swaps of the plan, whose Problem is `own`: at no cost, and not to be moved.
void settle(const std::vector<FreeSwap>& swaps, Problem& own, Retention& plan);

}  // namespace plimsoll::schedule
