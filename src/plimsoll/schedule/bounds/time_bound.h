// Time bound: seconds that no plan of one order of first runs within a budget can beat.
//
// While task t runs for the first time, what was made
// before and is read after lies in memory or must be brought back later, at no less than its own
// price: the time of its task, its encode and decode, or nothing if it may be swapped (the copy
// might be hidden). So every plan picks a set of gaps (between two uses of one value) that are left
// empty somewhere, pays c_g for each, and the gaps across t must free need_t bytes, at every t:
//
//     min  sum c_g z_g    s.t.  sum over g across t of m_g z_g >= need_t for every t,   0 <= z <= 1
//
// The bound is this LP, by its dual: for any prices p_t >= 0 of a byte at stage t
//
//     sum need_t p_t - sum over g of max(0, m_g * (sum of p over g) - c_g)
//
// is below every plan, so the ascent may stop anywhere. It starts from the best price at one single
// stage (a fractional knapsack there), and climbs by subgradient steps. Why not an LP library: the
// solution is not needed, only a bound that holds; a step is O(gaps + stages), so it works at any
// size, and there is nothing to link. Weaker than the LP of prove.h, which also knows that what is
// recomputed needs its inputs; that one takes seconds at 100 tasks.
#pragma once

#include <cstdint>

#include "plimsoll/schedule/search/problem.h"

namespace plimsoll::schedule {

// Seconds that any schedule of this order within the budget needs on top of the no-recompute
// plan's. `reached` is what the best known schedule needs: it sets the length of the steps, and is
// never exceeded.
double cover_bound(const Problem& problem, const Sequence& sequence, std::int64_t budget,
                   double reached);

}  // namespace plimsoll::schedule
