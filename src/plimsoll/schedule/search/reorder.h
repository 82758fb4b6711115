// Orders of first runs when nothing has to be recomputed: less alive at once, at no cost in time.
//
// kList runs, of the tasks that are ready, the one that frees most; kSearch also polishes that
// order and the given one with neighbour swaps (order.h), each round against a budget a little
// below the peak it has, so that the moves are spent where the peak is. The given order competes
// and wins ties: the answer never holds more than it does.
//
// Deterministic in the seed. Cost: O(tasks · 64) for the list, a fixed number of swaps per task for
// the search.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/schedule/fit_options.h"
#include "plimsoll/schedule/schedule.h"

namespace plimsoll::schedule {

// The order with the lowest peak that was found.
std::vector<TaskId> low_order(const Workload& workload, OrderChoice choice, std::uint64_t seed);

// keep_all() in another order; an error when data or updates forbid it.
Result<Schedule> keep_all_in(const Workload& workload, const std::vector<TaskId>& order);

}  // namespace plimsoll::schedule
