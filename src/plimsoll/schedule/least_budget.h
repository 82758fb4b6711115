// The dual question: the smallest budget whose fastest plan is fast enough.
//
// fit() takes bytes and gives seconds. Whoever can spare 5 % of the time asks the other way round.
// A smaller budget never has a faster best plan, so the answer lies where the plans stop being fast
// enough, and halving finds the place:
//
//   budget   lower bound ├────────────────┼───────┤ everything kept
//   seconds              too slow  │ fast enough
//                                  ▲ the answer
//
// Budgets come from a grid of kBudgetGrid steps that depends on its two ends only, whatever the
// limit is. So where the plans themselves are monotone (deterministic searches are), more time
// never gives more memory.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"

namespace plimsoll::schedule {

inline constexpr std::int64_t kBudgetGrid = 256;

// The budget `step` of `steps` even steps below the highest; the last is the lowest. Exact where
// there are fewer bytes than steps too.
inline Bytes step_down(Bytes highest, Bytes lowest, std::int64_t step, std::int64_t steps) {
  const std::int64_t span = highest.value - lowest.value;
  return Bytes(highest.value - span / steps * step - span % steps * step / steps);
}

// `fast_enough(budget, left)` plans within a budget, with at most so many questions to come after
// it, and says whether that took no longer than is allowed; it keeps what it likes. Everything
// kept, at `highest`, is taken to be fast enough and is not asked.
template <typename FastEnough>
Status bisect_budgets(Bytes lowest, Bytes highest, FastEnough fast_enough) {
  std::int64_t good = 0;  // in steps below the highest
  std::int64_t bad = kBudgetGrid + 1;
  while (bad - good > 1) {
    const std::int64_t middle = good + (bad - good) / 2;
    int left = 0;
    for (std::int64_t span = bad - middle; span > 1; span /= 2) ++left;
    PLIMSOLL_TRY(const bool enough,
                 fast_enough(step_down(highest, lowest, middle, kBudgetGrid), left));
    (enough ? good : bad) = middle;
  }
  return {};
}

// One unlucky search ends the way down far above the answer: another look, as far again from what
// was `reached` as that lies below `highest`, at least a sixteenth of all. What is asked for should
// not depend on the same random numbers again.
template <typename FastEnough>
Status look_again(Bytes lowest, Bytes highest, Bytes reached, FastEnough fast_enough) {
  const Bytes far = std::max(highest - reached, Bytes((highest - lowest).value / 16));
  return bisect_budgets(std::max(lowest, reached - far), reached, fast_enough);
}

struct Look {
  double share = 1;  // of the deadline: by when it ends
  std::uint64_t seed = 0;
};

// Both looks, half of the deadline for the first: `fast_enough(look, budget, left)`; `reached()`
// tells what was found so far.
template <typename Reached, typename FastEnough>
Status look_twice(Bytes lowest, Bytes highest, std::uint64_t seed, Reached reached,
                  FastEnough fast_enough) {
  const auto during = [&](Look look) {
    return [&fast_enough, look](Bytes budget, int left) { return fast_enough(look, budget, left); };
  };
  PLIMSOLL_RETURN_IF_ERROR(bisect_budgets(lowest, highest, during({0.5, seed})));
  return look_again(lowest, highest, reached(), during({1, seed + 1}));
}

}  // namespace plimsoll::schedule
