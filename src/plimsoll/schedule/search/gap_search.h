// Gap search: annealing over one decision for every gap between two uses, with every remedy in it.
//
// A move changes what becomes of one to four gaps: the value is kept, dropped and recomputed, waits
// on the host or in a smaller form, or is left to prices again; or how early something comes back.
// The walk of greedy_evictor.h then plays the whole step with those decisions, fills in what they
// leave open, and says how long it takes over compute and both copy streams. Gaps that were left
// empty in the plan as it stands are tried more often than others.
//
//   gaps of x, read at 3 and 9    made ──(undecided)──▶ 3 ──(swap)──▶ 9 ──(undecided)──
//   a move                        ──(swap)──▶ 9 becomes ──(drop)──▶ 9: x is recomputed before 9
//
// Why not intervals as in interval_search.h: the price of a copy depends on all other copies, so no
// part of the plan can be judged alone. A walk judges all of it, and whatever it plays is within
// the budget.
//
// Cost: one walk a move, 20 µs at 25 tasks, 0.3 ms at 350. One object per thread.
#pragma once

#include <cstdint>
#include <functional>

#include "plimsoll/schedule/search/greedy_evictor.h"

namespace plimsoll::schedule {

struct GapSearchSettings {
  std::function<double()> progress;                          // 0 at the start, 1 when it has to end
  std::function<void(const GreedyEvictor& walk)> on_better;  // faster than all walks before it
};

// What a plan did with every gap: the walk that keeps to it comes close to the plan.
std::vector<GapChoice> choices_of(const Problem& problem, const Sequence& sequence,
                                  const ActionList& list);

// Starts from a walk with `start`; the sequence must outlive the call.
void search_gaps(const Problem& problem, const Sequence& sequence, EvictorSettings start,
                 std::uint64_t seed, const SearchOptions& options,
                 const GapSearchSettings& settings);

}  // namespace plimsoll::schedule
