// fit(): the fastest schedule of a workload that never holds more than a budget of bytes.
//
// One decision is taken for every gap between two uses of a value: keep it, recompute it, swap it
// or encode it. Choosing them all at best is NP-hard even on one fixed order, so:
//   1. order for a low peak (order.h), unless the given order must stand;
//   2. evict greedily under the hard budget, again and again with perturbed prices
//      (greedy_evictor.h): every run is feasible, the first takes milliseconds;
//   3. improve by local search over retention intervals, with moves of operators
//      (interval_search.h), and over one decision per gap where values may be swapped
//      (gap_search.h);
//   4. bound from below (time_bound.h), so that the answer says how far from the best it can be.
// docs/searching.md has the whole with what each search gains. Rejected: integer programs as the
// planner (minutes at 50 nodes, days at 350), and dynamic programs over segments (chains only).
// Both remain, as a proof (prove.h) and as starting points (segments.h).
//
// Works as an anytime search: `deadline` in seconds, `stop` to end it, the best so far is the
// answer. With `deterministic` the search is cut by counts instead of clocks, and candidates come
// from one fixed ladder of budgets whatever budget was asked: the answer is the fastest candidate
// that fits, so a smaller budget never gives a larger peak and a larger one never a slower plan.
//
// Failures: kDoesNotFit below the proven lower bound (what must be in memory at one task, whatever
// the plan), with the bound and its limiting tensors in the message; kNoAnswer when none was found
// above it, with the smallest budget that was found to work (unless neither options.on_none nor
// options.bound asks for it); kUsage and kBadInput for options and workloads that make no sense.
//
// Cost: first plan O(evictions · 64 + tasks), about 4 µs a task; memory O(tasks²/8) bytes for the
// local search, which is left out above kRetentionLimit (values · tasks).
#pragma once

#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"
#include "plimsoll/schedule/bounds/memory_bound.h"
#include "plimsoll/schedule/fit_options.h"
#include "plimsoll/schedule/schedule.h"
#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::schedule {

struct Fit {
  Schedule schedule;
  std::vector<TaskId> order;  // the order of first runs
  Bytes keep_all_bytes;       // peak of the given order when nothing is dropped early
  double keep_all_seconds = 0;
  // no schedule of this order within the budget is faster; 0: not asked for
  double bound_seconds = 0;
  MemoryBound memory_bound;
  bool optimal = false;  // reached its bound
  // What was best before it, fastest first, within the budget too: for callers that need more than
  // bytes alive.
  std::vector<Schedule> runners_up;
  double seconds_spent = 0;

  double overhead() const;
  double bound_overhead() const;
};

Result<Fit> fit(const Workload& workload, const FitOptions& options);

// Schedules that keep nothing large in memory between two tasks, as far as it can be swapped: slow,
// but packing one needs hardly more than its largest task. One for each of a few sizes up to which
// values stay, down to none; fewer where a value can neither stay nor leave.
Result<std::vector<Fit>> task_by_task(const Workload& workload, const FitOptions& options);

// The curve from the no-recompute plan down to the smallest that works: one ladder of candidates,
// monotone. At most `points` of them, largest budget first.
Result<std::vector<Fit>> sweep(const Workload& workload, const FitOptions& options,
                               int points = 16);

// No schedule of a workload within options.budget that runs tasks first in the order of this one is
// faster.
double bound_for_order_of(const Schedule& schedule, const Workload& workload,
                          const FitOptions& options);

// Every candidate of the ladder that options.budget would hold, fastest first: for callers that can
// judge a schedule only by what comes after it (packing). The same ladder for every budget, by
// counted work, so the first that suits is monotone in the budget.
Result<std::vector<Fit>> ladder(const Workload& workload, const FitOptions& options);

// The schedule of the lowest peak that was found to take at most this fraction more time than
// keeping everything (least_budget.h); options.budget does not count. Keeping everything is always
// one.
Result<Fit> least_memory(const Workload& workload, const FitOptions& options, double slowdown);

// The smallest budget for which a plan was found, by bisection; at least the proven lower bound.
// Two dozen walks.
Bytes smallest_found(const Workload& workload, const FitOptions& options);

// An order that depends on neither budget nor techniques (search/order.h), worth keeping for
// FitOptions.
std::vector<TaskId> mirrored_order(const Workload& workload);

// The no-recompute plan: everything stays until its last reader; in place where offered. The
// baseline of every overhead.
Schedule keep_all(const Workload& workload);

}  // namespace plimsoll::schedule
