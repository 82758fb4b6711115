#include "plimsoll/api/graph_planner.h"

#include <utility>

#include "plimsoll/plan/fit/no_recompute_plan.h"
#include "plimsoll/plan/fit/within_budget.h"
#include "plimsoll/rewrite/keep_masks.h"

namespace plimsoll::api {

Result<std::optional<ir::Graph>> with_masks(const ir::Graph& graph, const plan::PlanOptions& how) {
  if (!plan::encodes(how)) return std::optional<ir::Graph>();
  PLIMSOLL_TRY(ir::Graph out, rewrite::keep_masks(graph));
  return std::optional(std::move(out));
}

Result<GraphPlanner> GraphPlanner::prepare(const ir::Graph& graph, plan::PlanOptions how,
                                           const plan::PlanSummary* reference) {
  how.compare = how.compare && reference == nullptr;
  PLIMSOLL_TRY(std::optional<ir::Graph> masked, with_masks(graph, how));
  GraphPlanner out;
  PLIMSOLL_TRY(out.work_, plan::make_workloads(graph, std::move(masked), how));
  // Beside another plan it is only a beginning, and not worth the search for an order.
  if (reference != nullptr) how.order = schedule::OrderChoice::kGiven;
  PLIMSOLL_TRY(out.kept_, plan::no_recompute_plan(out.work_, how));
  if (reference != nullptr) out.kept_.summary = *reference;
  return out;
}

Result<plan::PlannedGraph> GraphPlanner::plan(const plan::PlanOptions& how) {
  if (std::exchange(planned_, true)) work_.watch = Stopwatch();
  PLIMSOLL_TRY(plan::PlannedGraph out, plan::within_budget(kept_, work_, how));
  PLIMSOLL_TRY(out.plan, plan::checked(std::move(out.plan)));
  out.summary.plan_seconds = work_.watch.seconds();
  return out;
}

}  // namespace plimsoll::api
