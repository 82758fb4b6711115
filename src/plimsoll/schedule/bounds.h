// Bounds: what no plan can beat.
//
// floor_of (declared in fit.h): at every task its inputs, outputs, scratch and everything that
// nothing can remove must be in memory at once. A budget below that is proven impossible.
//
// knapsack_bound: for a fixed order of first runs. While task t runs for the first time, whatever
// was made before and is read after and is not there must be brought back later, at no less than
// its own price: the time of its task, its encode and decode, or nothing if it may be swapped (the
// copy might be hidden). So the plan pays at least for the cheapest set whose absence makes room: a
// fractional knapsack, solved greedily by price per byte, at the worst of up to `stages` positions.
// O(stages · values) after one sort.
#pragma once

#include <cstdint>

#include "plimsoll/schedule/problem.h"

namespace plimsoll::schedule {

// Seconds that any schedule of this order within the budget needs on top of keep-all's.
double knapsack_bound(const Problem& problem, const Sequence& sequence, std::int64_t budget,
                      int stages = 400);

}  // namespace plimsoll::schedule
