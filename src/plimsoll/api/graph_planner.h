// A graph, and of its plans what no budget changes: its workloads and the plan that recomputes
// nothing. Made once, it is planned for as often as somebody asks.
#pragma once

#include "plimsoll/ir/graph.h"
#include "plimsoll/plan/fit/plan_options.h"
#include "plimsoll/plan/fit/workloads.h"

namespace plimsoll::api {

class GraphPlanner {
 public:
  // With `reference`, its summaries are those of another no-recompute plan, and so are budgets in
  // percent. `graph` must outlive it.
  static Result<GraphPlanner> prepare(const ir::Graph& graph, plan::PlanOptions how,
                                      const plan::PlanSummary* reference = nullptr);

  // Checked by the verifier. The deadline counts from prepare() the first time, then from here.
  Result<plan::PlannedGraph> plan(const plan::PlanOptions& how);

  const plan::PlanSummary& summary() const { return kept_.summary; }

 private:
  plan::Workloads work_;
  plan::PlannedGraph kept_;
  bool planned_ = false;
};

// The graph in which gradients read masks of one bit, where activations may be encoded.
Result<std::optional<ir::Graph>> with_masks(const ir::Graph& graph, const plan::PlanOptions& how);

}  // namespace plimsoll::api
