#include "plimsoll/api/split_plans.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "plimsoll/api/graph_planner.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/plan/fit/within_budget.h"

namespace plimsoll::api {
namespace {

using plan::PlannedGraph;
using plan::PlanOptions;

// Of the deadline, to look at all ways of splitting. On large graphs a look takes longer than its
// part, so the last ones may not be looked at.
constexpr double kLooksShare = 0.5;

bool has_no_plan(const Error& error) {
  return error.code == ErrorCode::kDoesNotFit || error.code == ErrorCode::kNoAnswer;
}

// The fewer seconds, or where time is given and bytes are asked for, the fewer bytes.
bool is_better_plan(const PlannedGraph& a, const PlannedGraph& b, const PlanOptions& how) {
  return how.slowdown
             ? a.plan.arena_bytes() < b.plan.arena_bytes()
             : plan::seconds_of(a.plan, how.copy_tax) < plan::seconds_of(b.plan, how.copy_tax);
}

class SplitPlanner {
 public:
  SplitPlanner(const ir::Graph& whole, const std::vector<rewrite::SplitGraph>& splits,
               const PlanOptions& how)
      : whole_(whole), splits_(splits), how_(how), planners_(1 + splits.size()) {}

  Result<PlannedGraph> run() {
    PLIMSOLL_TRY(planners_[0], GraphPlanner::prepare(whole_, how_));
    std::size_t chosen = splits_.size();  // where none is found, the finest parts say why
    std::optional<PlannedGraph> best;
    for (std::size_t i = 0; i <= splits_.size() && may_look(); ++i) {
      auto found = plan_one(i, look());
      if (!found && !has_no_plan(found.error())) return forward(found);
      if (!found || (best && !is_better_plan(*found, *best, how_))) continue;
      chosen = i;
      best = std::move(*found);
    }
    if (best && how_.deterministic) return *std::move(best);
    PlanOptions rest = how_;
    rest.deadline_seconds = std::max(0.05, how_.deadline_seconds - watch_.seconds());
    auto last = plan_one(chosen, rest);
    if (!best || (!last && !has_no_plan(last.error()))) return last;
    return last && is_better_plan(*last, *best, how_) ? std::move(*last) : *std::move(best);
  }

 private:
  bool may_look() const {
    return how_.deterministic || watch_.seconds() < kLooksShare * how_.deadline_seconds;
  }

  PlanOptions look() const {
    PlanOptions out = how_;
    out.on_failure = nullptr;
    out.persist = false;
    if (!how_.deterministic) {
      out.deadline_seconds *= kLooksShare / static_cast<double>(planners_.size());
    }
    return out;
  }

  // 0: as it is.
  Result<PlannedGraph> plan_one(std::size_t i, const PlanOptions& how) {
    if (!planners_[i]) {
      plan::PlanSummary reference = planners_[0]->summary();
      reference.split_operators = splits_[i - 1].operators;
      reference.split_parts = splits_[i - 1].parts;
      PLIMSOLL_TRY(planners_[i], GraphPlanner::prepare(splits_[i - 1].graph, how, &reference));
    }
    PLIMSOLL_TRY(PlannedGraph out, planners_[i]->plan(how));
    out.summary.plan_seconds = watch_.seconds();
    return out;
  }

  const ir::Graph& whole_;
  const std::vector<rewrite::SplitGraph>& splits_;
  const PlanOptions& how_;
  std::vector<std::optional<GraphPlanner>> planners_;  // that were asked for
  Stopwatch watch_;
};

}  // namespace

bool may_split(const PlanOptions& how) {
  return how.remedies.split && (!how.budget.empty() || how.slowdown) && how.strategy.empty();
}

Result<PlannedGraph> plan_best_split(const ir::Graph& whole,
                                     const std::vector<rewrite::SplitGraph>& splits,
                                     const PlanOptions& how) {
  return SplitPlanner(whole, splits, how).run();
}

std::vector<PlannedGraph> only_the_best(std::vector<PlannedGraph> points) {
  std::ranges::stable_sort(points, {}, [](const PlannedGraph& point) {
    return std::pair(point.plan.predicted_seconds, point.plan.arena_bytes());
  });
  std::vector<PlannedGraph> out;
  for (PlannedGraph& point : points) {
    if (out.empty() || point.plan.arena_bytes() < out.back().plan.arena_bytes())
      out.push_back(std::move(point));
  }
  return out;
}

}  // namespace plimsoll::api
