// Interval search: simulated annealing over retention intervals and operator positions.
//
// Moves: keep a stretch that is recomputed · drop idle stretches · encode one · recompute earlier
// and hold from there (so that inputs can go) · recompute a value from inputs held for it · move an
// operator to another place in the order (interval_moves.h). A move stays when the plan is faster,
// or a little slower early on. Two ways to stay within the budget, which find different plans:
//   repaired   after a move the cheapest idle stretches at the highest stage go until it fits, then
//              what became free is filled. A thousand considered moves a second; strong on large
//              graphs, where most moves are independent of each other.
//   priced     a move is taken as it comes, and bytes over the budget cost time, at a price of
//              every stage that rises while it is over and falls while the plan is within. Some
//              hundred times more moves (half a million a second at 1,000 tasks); strong where
//              several drops are worth it only together (U-nets, random wiring).
//
// Cuts itself by a count of moves or by the caller's clock. Every plan it reports is within the
// budget in the model of retention.h; the linked schedule is then at most that.
#pragma once

#include <cstdint>
#include <functional>

#include "plimsoll/schedule/search/retention.h"
#include "plimsoll/schedule/search/search_options.h"

namespace plimsoll::schedule {

struct IntervalSearchSettings {
  std::int64_t budget = 0;
  bool priced = false;
  bool move_operators = true;
  bool dear = false;                 // priced: bytes over the budget are dear from the start
  double heat = 0;                   // as in IntervalSearchOptions, of the way it goes
  std::function<double()> progress;  // 0 at the start, 1 when it has to end
};

struct IntervalPlan {
  bool found = false;  // within the budget; else the list is where the search ended, or empty
  double seconds = 0;
  std::int64_t excess = 0;  // byte · stages over the budget, where none was found
  ActionList list;
  std::vector<Index> order;
};

// Starts from the plan as it stands, within the budget or not.
IntervalPlan search_intervals(Retention start, const Problem& problem, std::uint64_t seed,
                              const IntervalSearchOptions& options,
                              const IntervalSearchSettings& settings);

}  // namespace plimsoll::schedule
