// The plan when nothing has to be given up: order, buckets, offsets, streams.
//
// Two candidates, the given order and the one that `order` asks for; each goes the whole way, and
// the one with the smaller arena is the answer, the given order on ties. So a better order never
// makes a worse plan, whatever the packer does with it. Where concats can do without a copy
// (schedule/workload/joined_parts.h), both are tried with and without, and the copies go on ties.
//
// The summary says beside it what simpler planners need: every result in memory of its own, results
// in place, memory shared by greedy best-fit.
#pragma once

#include "plimsoll/plan/fit/workloads.h"
#include "plimsoll/plan/make_plan.h"

namespace plimsoll::plan {

// How a schedule is packed, whatever made it.
Result<MakePlanOptions> packing_options(const ir::Graph& graph, const PlanOptions& options);

// Onto options.streams compute streams; within the plan's budget, when it has one.
Status spread(Plan& plan, const PlanOptions& options);

// The arena when everything is kept, packed without a search: never less than that of
// no_recompute_plan.
Result<Bytes> greedy_arena(const Workloads& work);

// With a budget: on one stream, as what the budget is held against. Not yet checked.
Result<PlannedGraph> no_recompute_plan(const Workloads& work, const PlanOptions& options);

}  // namespace plimsoll::plan
