// From the plan that recomputes nothing to the one that was asked for, and the whole curve of them.
//
//   no budget                    the plan as it is
//   a slowdown                   the smallest arena that is fast enough (schedule/least_budget.h)
//   it is inside the budget      the same, spread over the streams
//   a classic strategy by name   its schedule (schedule/search/strategies.h), packed
//   else                         the fit loop (fit_budget.h): schedule ⇄ pack
#pragma once

#include <vector>

#include "plimsoll/plan/fit/workloads.h"

namespace plimsoll::plan {

// Not yet checked.
Result<PlannedGraph> within_budget(PlannedGraph no_recompute, const Workloads& work,
                                   const PlanOptions& options);

// What a step takes, with what copies cost the computation beside them.
double seconds_of(const Plan& plan, double copy_tax);

// Whether it is certain, before anything was timed, that no plan fits the budget: whoever would
// measure operators first need not. Times play no part in it.
Result<bool> is_hopeless(const Workloads& work, const PlanOptions& options);

// The plan, after the independent verifier has agreed.
Result<Plan> checked(Result<Plan> plan);

// The curve, largest budget first: at most `points` plans between keeping everything and the
// smallest that works. Each is the fastest of all that were found within its budget, so a smaller
// arena is never a faster plan. All of them are checked.
Result<std::vector<PlannedGraph>> sweep(const Workloads& work, const PlanOptions& options,
                                        int points = 12);

}  // namespace plimsoll::plan
