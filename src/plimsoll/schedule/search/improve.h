// Improve: simulated annealing over retention intervals and operator positions.
//
// Moves: keep a stretch that is recomputed · drop idle stretches · encode one · recompute earlier
// and hold from there (so that inputs can go) · make a value again from inputs held for it · move
// an operator to another place in the order. A move stays when the plan is faster, or a little
// slower early on. Two ways to stay within the budget, which find different plans:
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

#include "plimsoll/base/random.h"
#include "plimsoll/schedule/search/retention.h"

namespace plimsoll::schedule {

struct ImproveSettings {
  std::int64_t budget = 0;
  bool priced = false;
  bool move_operators = true;
  // Starting temperature: of `repaired` as a fraction of the step's time, of `priced` in times of a
  // mean task.
  double heat = 0.006;
  std::function<double()> progress;  // 0 at the start, 1 when it has to end
  std::function<void(double seconds)> on_better;
};

struct Improved {
  bool found = false;
  double seconds = 0;
  Script script;
  std::vector<Index> order;
  std::int64_t moves = 0;
};

// Starts from the plan as it stands, within the budget or not.
Improved improve(Retention plan, const Problem& problem, std::uint64_t seed,
                 const ImproveSettings& settings);

}  // namespace plimsoll::schedule
