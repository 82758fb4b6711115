#include "plimsoll/api/planning.h"

#include <algorithm>
#include <memory>

#include "plimsoll/api/fit_budget.h"
#include "plimsoll/api/keep_all_plan.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/pack/pack.h"
#include "plimsoll/plan/make_plan.h"
#include "plimsoll/rewrite/keep_masks.h"
#include "plimsoll/schedule/search/strategies.h"

namespace plimsoll::api {
namespace {

using schedule::GraphWorkload;

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
  plan::MakePlanOptions how;
  how.greedy = true;
  PLIMSOLL_TRY(const plan::Plan plan, plan::make_plan(graph, mapped, schedule, how));
  return plan.arena_bytes();
}

// What may be fitted to a budget: with encoding on, another graph, in which masks of one bit stand
// where a gradient needs no more.
struct Masked {
  ir::Graph graph;
  GraphWorkload mapped;
};

class Fittable {
 public:
  static Result<Fittable> make(const ir::Graph& graph, const GraphWorkload& mapped,
                               const PlanOptions& options) {
    Fittable out(graph, mapped);
    if (!encodes(options)) return out;
    out.masked_ = std::make_unique<Masked>();
    PLIMSOLL_TRY(out.masked_->graph, rewrite::keep_masks(graph));
    PLIMSOLL_TRY(out.masked_->mapped,
                 workload_of(out.masked_->graph, options, {.in_place = options.in_place}));
    return out;
  }
  const ir::Graph& graph() const { return masked_ ? masked_->graph : plain_graph_; }
  const GraphWorkload& mapped() const { return masked_ ? masked_->mapped : plain_mapped_; }

 private:
  Fittable(const ir::Graph& graph, const GraphWorkload& mapped)
      : plain_graph_(graph), plain_mapped_(mapped) {}

  const ir::Graph& plain_graph_;
  const GraphWorkload& plain_mapped_;
  std::unique_ptr<Masked> masked_;
};

Status hold_to_budget(PlannedGraph& planned, const PlanOptions& options) {
  if (options.budget.empty()) return {};
  PLIMSOLL_TRY(const Bytes budget, parse_byte_size(options.budget, planned.summary.keep_all));
  const Bytes needed = planned.plan.arena_bytes();
  if (needed > budget) {
    return fail(ErrorCode::kNoAnswer, "strategy '{}' needs {}, the budget is {}", options.strategy,
                human(needed), human(budget));
  }
  planned.plan.budget = budget;
  return {};
}

}  // namespace

Result<PlannedGraph> plan_graph(const ir::Graph& graph, const PlanOptions& options) {
  const Stopwatch watch;
  PlannedGraph out;
  PLIMSOLL_TRY(const GraphWorkload apart, workload_of(graph, options, {.in_place = false}));
  PLIMSOLL_TRY(const GraphWorkload mapped,
               workload_of(graph, options, {.in_place = options.in_place}));
  const schedule::Schedule natural_apart = schedule::keep_all(apart.workload);
  const schedule::Schedule natural = schedule::keep_all(mapped.workload);
  out.summary.baseline = sum_of_buffers(apart, natural_apart);
  out.summary.in_place = sum_of_buffers(mapped, natural);
  if (options.compare) {
    PLIMSOLL_TRY(out.summary.shared, greedy_height(graph, apart, natural_apart));
    PLIMSOLL_TRY(out.summary.both, greedy_height(graph, mapped, natural));
  }

  PLIMSOLL_TRY(plan::Plan keep_all, plan_keep_all(graph, mapped, options));
  out.summary.keep_all = keep_all.arena_bytes();
  out.summary.keep_all_seconds = natural.seconds;
  if (!options.strategy.empty()) {
    PLIMSOLL_TRY(const Fittable fittable, Fittable::make(graph, mapped, options));
    PLIMSOLL_TRY(const schedule::Schedule classic,
                 schedule::run_strategy(fittable.mapped().workload, options.strategy));
    out.summary.counts = schedule::count(classic);
    out.summary.strategy = options.strategy;
    PLIMSOLL_TRY(const plan::MakePlanOptions packing, packing_options(fittable.graph(), options));
    PLIMSOLL_TRY(out.plan, plan::make_plan(fittable.graph(), fittable.mapped(), classic, packing));
    PLIMSOLL_RETURN_IF_ERROR(hold_to_budget(out, options));
    PLIMSOLL_RETURN_IF_ERROR(spread(out.plan, options));
    PLIMSOLL_TRY(out.plan, checked(std::move(out.plan)));
  } else if (options.budget.empty()) {
    PLIMSOLL_TRY(out.plan, checked(std::move(keep_all)));
  } else {
    PLIMSOLL_TRY(const Bytes budget, parse_byte_size(options.budget, out.summary.keep_all));
    if (keep_all.arena_bytes() <= budget) {
      keep_all.budget = budget;
      PLIMSOLL_RETURN_IF_ERROR(spread(keep_all, options));
      PLIMSOLL_TRY(out.plan, checked(std::move(keep_all)));
    } else {
      PLIMSOLL_TRY(const Fittable fittable, Fittable::make(graph, mapped, options));
      PlanOptions rest = options;
      rest.deadline_seconds = std::max(0.05, options.deadline_seconds - watch.seconds());
      PLIMSOLL_TRY(out.plan, checked(fit_budget(fittable.graph(), fittable.mapped(), rest, budget,
                                                out.summary)));
    }
  }
  out.summary.plan_seconds = watch.seconds();
  return out;
}

Result<std::vector<PlannedGraph>> sweep_graph(const ir::Graph& graph, const PlanOptions& options,
                                              int points) {
  const Stopwatch watch;
  PlanOptions how = options;
  how.budget.clear();
  PLIMSOLL_TRY(PlannedGraph keep_all, plan_graph(graph, how));
  PLIMSOLL_TRY(const GraphWorkload plain,
               workload_of(graph, options, {.in_place = options.in_place}));
  PLIMSOLL_TRY(const Fittable fittable, Fittable::make(graph, plain, options));
  const Bytes highest = keep_all.plan.arena_bytes();
  const Bytes floor = schedule::memory_bound(fittable.mapped().workload, options.remedies).bytes;
  std::vector<PlannedGraph> found;
  keep_all.plan.budget = highest;
  found.push_back(std::move(keep_all));
  for (int point = 1; point < points; ++point) {
    const Bytes budget(highest.value - (highest.value - floor.value) / points * point);
    PlanOptions one = options;
    one.deadline_seconds =
        std::max(0.05, (options.deadline_seconds - watch.seconds()) / (points - point));
    PlannedGraph next{{}, found.front().summary};
    one.on_failure = nullptr;  // the smallest that works ends the curve
    auto plan = checked(fit_budget(fittable.graph(), fittable.mapped(), one, budget, next.summary));
    if (!plan) break;
    next.plan = std::move(*plan);
    next.summary.plan_seconds = watch.seconds();
    // What needs less and is no slower replaces what came before it.
    while (found.size() > 1 && found.back().plan.predicted_seconds >= next.plan.predicted_seconds &&
           found.back().plan.arena_bytes() >= next.plan.arena_bytes()) {
      found.pop_back();
    }
    const bool smaller = next.plan.arena_bytes() < found.back().plan.arena_bytes();
    if (smaller && next.plan.predicted_seconds >= found.back().plan.predicted_seconds)
      found.push_back(std::move(next));
    if (options.stop != nullptr && options.stop->load()) break;
  }
  return found;
}

}  // namespace plimsoll::api
