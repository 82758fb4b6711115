#include "plimsoll/api/keep_all_plan.h"

#include <algorithm>

#include "plimsoll/plan/buckets.h"
#include "plimsoll/plan/check_plan.h"
#include "plimsoll/plan/streams.h"
#include "plimsoll/schedule/search/reorder.h"

namespace plimsoll::api {
namespace {

using schedule::GraphWorkload;
using schedule::TaskId;

Result<plan::Plan> plan_in_order(const ir::Graph& graph, const GraphWorkload& mapped,
                                 const PlanOptions& options, std::vector<TaskId> order) {
  PLIMSOLL_TRY(plan::MakePlanOptions how, packing_options(graph, options));
  if (options.bucket.value > 0) {
    plan::Buckets buckets = plan::make_buckets(graph, mapped, order, options.bucket);
    how.contiguous.insert(how.contiguous.end(), buckets.groups.begin(), buckets.groups.end());
    order = std::move(buckets.order);
  }
  PLIMSOLL_TRY(const schedule::Schedule schedule, schedule::keep_all_in(mapped.workload, order));
  PLIMSOLL_TRY(plan::Plan plan, plan::make_plan(graph, mapped, schedule, how));
  // A plan for a budget is spread when it is known which one it is.
  if (options.budget.empty()) PLIMSOLL_RETURN_IF_ERROR(spread(plan, options));
  return plan;
}

}  // namespace

Status spread(plan::Plan& plan, const PlanOptions& options) {
  return plan::spread_over_streams(
      plan, {.streams = options.streams, .two_ended = options.two_ended, .sharing = options.share});
}

Result<plan::MakePlanOptions> packing_options(const ir::Graph& graph, const PlanOptions& options) {
  plan::MakePlanOptions how;
  how.sharing = options.share;
  how.two_ended = options.two_ended;
  how.contiguous = options.contiguous;
  PLIMSOLL_TRY(how.pinned, values_to_pin(graph, options.pinned));
  return how;
}

Result<plan::Plan> checked(Result<plan::Plan> plan) {
  if (!plan) return plan;
  const plan::PlanCheck check = plan::check_plan(*plan);
  if (!check.ok())
    return fail(ErrorCode::kInternal, "the planner made a wrong plan, please report it: {}",
                check.problems.front());
  return plan;
}

bool encodes(const PlanOptions& options) {
  return options.remedies.encode || options.strategy == "encode";
}

Result<GraphWorkload> workload_of(const ir::Graph& graph, const PlanOptions& options,
                                  const Mapping& mapping) {
  schedule::GraphWorkloadOptions how;
  how.kernels = options.kernels;
  how.seconds = options.seconds;
  how.in_place = mapping.in_place;
  how.join = mapping.join;
  if (encodes(options)) how.codecs = options.codecs;
  how.lossy = options.lossy;
  PLIMSOLL_TRY(how.pinned, values_to_pin(graph, options.pinned));
  return schedule::make_graph_workload(graph, how);
}

Result<std::vector<ValueId>> values_to_pin(const ir::Graph& graph,
                                           const std::vector<std::string>& names) {
  std::vector<ValueId> out;
  for (const std::string& wanted : names) {
    const auto place = std::find_if(graph.values.begin(), graph.values.end(),
                                    [&](const ir::Value& value) { return value.name == wanted; });
    if (place == graph.values.end())
      return fail(ErrorCode::kUsage, "--pin '{}': the graph has no value of that name", wanted);
    if (!ir::is_persistent(place->kind))
      out.emplace_back(static_cast<std::size_t>(place - graph.values.begin()));
  }
  return out;
}

namespace {

Result<plan::Plan> best_order(const ir::Graph& graph, const GraphWorkload& mapped,
                              const PlanOptions& options) {
  std::vector<TaskId> given;
  for (std::size_t t = 0; t < mapped.workload.tasks.size(); ++t) given.emplace_back(t);
  PLIMSOLL_TRY(plan::Plan best, plan_in_order(graph, mapped, options, given));
  if (options.order == schedule::OrderChoice::kGiven) return best;
  std::vector<TaskId> lower = schedule::low_order(mapped.workload, options.order, options.seed);
  if (lower == given) return best;
  PLIMSOLL_TRY(plan::Plan other, plan_in_order(graph, mapped, options, std::move(lower)));
  return other.arena_bytes() < best.arena_bytes() ? std::move(other) : std::move(best);
}

}  // namespace

Result<plan::Plan> plan_keep_all(const ir::Graph& graph, const GraphWorkload& mapped,
                                 const PlanOptions& options) {
  PLIMSOLL_TRY(plan::Plan best, best_order(graph, mapped, options));
  if (!options.in_place || options.bucket.value > 0 || !options.contiguous.empty()) return best;
  PLIMSOLL_TRY(const GraphWorkload joined, workload_of(graph, options, {.join = true}));
  if (joined.joined == 0) return best;
  PLIMSOLL_TRY(plan::Plan other, best_order(graph, joined, options));
  return other.arena_bytes() <= best.arena_bytes() ? std::move(other) : std::move(best);
}

}  // namespace plimsoll::api
