#include "plimsoll/plan/fit/no_recompute_plan.h"

#include "plimsoll/plan/buckets.h"
#include "plimsoll/plan/streams.h"
#include "plimsoll/schedule/search/reorder.h"

namespace plimsoll::plan {
namespace {

using schedule::GraphWorkload;
using schedule::TaskId;

// Bytes when every buffer has memory of its own.
Bytes sum_of_buffers(const GraphWorkload& mapped, const schedule::Schedule& schedule) {
  Bytes total;
  for (const schedule::Instance& instance : schedule.instances) {
    if (!instance.takes_over.valid()) total += instance.bytes;
  }
  for (const schedule::Task& task : mapped.workload.tasks) total += task.scratch;
  return total;
}

Result<Bytes> greedy_height(const ir::Graph& graph, const GraphWorkload& mapped,
                            const schedule::Schedule& schedule) {
  MakePlanOptions how;
  how.greedy = true;
  PLIMSOLL_TRY(const Plan plan, make_plan(graph, mapped, schedule, how));
  return plan.arena_bytes();
}

Result<Plan> plan_in_order(const ir::Graph& graph, const GraphWorkload& mapped,
                           const PlanOptions& options, std::vector<TaskId> order) {
  PLIMSOLL_TRY(MakePlanOptions how, packing_options(graph, options));
  if (options.bucket.value > 0) {
    Buckets buckets = make_buckets(graph, mapped, order, options.bucket);
    how.contiguous.insert(how.contiguous.end(), buckets.groups.begin(), buckets.groups.end());
    order = std::move(buckets.order);
  }
  PLIMSOLL_TRY(const schedule::Schedule schedule, schedule::keep_all_in(mapped.workload, order));
  PLIMSOLL_TRY(Plan plan, make_plan(graph, mapped, schedule, how));
  // A plan for a budget is spread when it is known which one it is.
  if (options.budget.empty() && !options.slowdown) PLIMSOLL_RETURN_IF_ERROR(spread(plan, options));
  return plan;
}

Result<Plan> best_order(const ir::Graph& graph, const GraphWorkload& mapped,
                        const PlanOptions& options) {
  std::vector<TaskId> given;
  for (std::size_t t = 0; t < mapped.workload.tasks.size(); ++t) given.emplace_back(t);
  PLIMSOLL_TRY(Plan best, plan_in_order(graph, mapped, options, given));
  if (options.order == schedule::OrderChoice::kGiven) return best;
  std::vector<TaskId> lower = schedule::low_order(mapped.workload, options.order, options.seed);
  if (lower == given) return best;
  PLIMSOLL_TRY(Plan other, plan_in_order(graph, mapped, options, std::move(lower)));
  return other.arena_bytes() < best.arena_bytes() ? std::move(other) : std::move(best);
}

Result<Plan> best_of_joined(const ir::Graph& graph, const GraphWorkload& mapped,
                            const PlanOptions& options) {
  PLIMSOLL_TRY(Plan best, best_order(graph, mapped, options));
  if (!options.in_place || options.bucket.value > 0 || !best.contiguous.empty()) return best;
  PLIMSOLL_TRY(const GraphWorkload joined, workload_of(graph, options, {.join = true}));
  if (joined.joined == 0) return best;
  PLIMSOLL_TRY(Plan other, best_order(graph, joined, options));
  return other.arena_bytes() <= best.arena_bytes() ? std::move(other) : std::move(best);
}

}  // namespace

Result<MakePlanOptions> packing_options(const ir::Graph& graph, const PlanOptions& options) {
  MakePlanOptions how;
  how.sharing = options.share;
  how.two_ended = options.two_ended;
  how.contiguous = options.contiguous;
  const auto groups = groups_of_collectives(graph);
  how.contiguous.insert(how.contiguous.end(), groups.begin(), groups.end());
  PLIMSOLL_TRY(how.pinned, values_to_pin(graph, options.pinned));
  return how;
}

Status spread(Plan& plan, const PlanOptions& options) {
  return spread_over_streams(
      plan, {.streams = options.streams, .two_ended = options.two_ended, .sharing = options.share});
}

Result<Bytes> greedy_arena(const Workloads& work) {
  return greedy_height(*work.graph, work.mapped, schedule::keep_all(work.mapped.workload));
}

Result<PlannedGraph> no_recompute_plan(const Workloads& work, const PlanOptions& options) {
  PlannedGraph out;
  PlanSummary& summary = out.summary;
  const schedule::Schedule apart = schedule::keep_all(work.apart.workload);
  const schedule::Schedule natural = schedule::keep_all(work.mapped.workload);
  summary.baseline = sum_of_buffers(work.apart, apart);
  summary.in_place = sum_of_buffers(work.mapped, natural);
  if (options.compare) {
    PLIMSOLL_TRY(summary.shared, greedy_height(*work.graph, work.apart, apart));
    PLIMSOLL_TRY(summary.both, greedy_height(*work.graph, work.mapped, natural));
  }
  PLIMSOLL_TRY(out.plan, best_of_joined(*work.graph, work.mapped, options));
  summary.no_recompute = out.plan.arena_bytes();
  summary.no_recompute_seconds = natural.seconds;
  return out;
}

}  // namespace plimsoll::plan
