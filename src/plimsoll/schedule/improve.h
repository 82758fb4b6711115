// Improve: simulated annealing over retention intervals and operator positions.
//
// A move changes a plan, repairs it to the budget by dropping the cheapest idle stretches at the
// highest stage, then fills what became free; it stays when it is faster, or a little slower early
// on. Moves: keep a stretch that is recomputed · drop idle stretches · encode one · recompute
// earlier and hold from there (so that inputs can go) · move an operator to another place in the
// order.
//
// Cuts itself by a count of moves or by the caller's clock. Every plan it reports is within the
// budget in the model of retention.h; the linked schedule is then at most that.
#pragma once

#include <cstdint>
#include <functional>

#include "plimsoll/base/random.h"
#include "plimsoll/schedule/retention.h"

namespace plimsoll::schedule {

struct ImproveSettings {
  std::int64_t budget = 0;
  bool move_operators = true;
  double heat = 0.006;               // starting temperature, as a fraction of the step's time
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
