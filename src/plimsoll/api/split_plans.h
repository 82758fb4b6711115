// Which way of splitting a graph (rewrite/split_rows.h) makes the best plan: found by planning.
//
// The graph as it is and every split of it are looked at briefly; the best gets the time that is
// left. All are compared with the graph as it is: a budget in percent is of its no-recompute plan,
// and so is a slowdown. With counted work every look is already the whole search; the fastest of
// all that fit is the answer: still monotone in the budget.
#pragma once

#include <vector>

#include "plimsoll/plan/fit/plan_options.h"
#include "plimsoll/rewrite/split_rows.h"

namespace plimsoll::api {

// Limits of rewrite::split_ladder.
inline constexpr int kSplitLimits = 4;

// Whether operators in parts are wanted: for one plan within a budget or a slowdown.
bool may_split(const plan::PlanOptions& how);

Result<plan::PlannedGraph> plan_best_split(const ir::Graph& whole,
                                           const std::vector<rewrite::SplitGraph>& splits,
                                           const plan::PlanOptions& how);

// Of several curves: the points than which none is both smaller and no slower, largest first.
std::vector<plan::PlannedGraph> only_the_best(std::vector<plan::PlannedGraph> points);

}  // namespace plimsoll::api
