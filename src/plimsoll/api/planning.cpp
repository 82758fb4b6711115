#include "plimsoll/api/planning.h"

#include "plimsoll/api/keep_all_plan.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/pack/pack.h"
#include "plimsoll/plan/check_plan.h"
#include "plimsoll/plan/make_plan.h"

namespace plimsoll::api {
namespace {

using schedule::GraphWorkload;

Result<GraphWorkload> workload_of(const ir::Graph& graph, const PlanOptions& options, bool in_place) {
  schedule::GraphWorkloadOptions how;
  how.kernels = options.kernels;
  how.seconds = options.seconds;
  how.in_place = in_place;
  PLIMSOLL_TRY(how.pinned, values_to_pin(graph, options.pinned));
  return schedule::make_graph_workload(graph, how);
}

// Bytes when every buffer has memory of its own.
Bytes sum_of_buffers(const GraphWorkload& mapped, const schedule::Schedule& schedule) {
  Bytes total;
  for (const schedule::Instance& instance : schedule.instances) {
    if (!instance.takes_over.valid()) total += instance.bytes;
  }
  for (const schedule::Task& task : mapped.workload.tasks) total += task.scratch;
  return total;
}

Result<Bytes> greedy_height(const ir::Graph& graph, const GraphWorkload& mapped, const schedule::Schedule& schedule) {
  plan::MakePlanOptions how;
  how.greedy = true;
  PLIMSOLL_TRY(const plan::Plan plan, plan::make_plan(graph, mapped, schedule, how));
  return plan.arena_bytes();
}

Result<plan::Plan> checked(Result<plan::Plan> plan) {
  if (!plan) return plan;
  const plan::PlanCheck check = plan::check_plan(*plan);
  if (!check.ok()) return fail(ErrorCode::kInternal, "the planner made a wrong plan, please report it: {}", check.problems.front());
  return plan;
}

plan::MakePlanOptions packing_options(const PlanOptions& options, Bytes budget) {
  plan::MakePlanOptions how;
  how.sharing = options.share;
  how.two_ended = options.two_ended;
  how.deterministic = true;
  how.budget = budget;
  how.contiguous = options.contiguous;
  return how;
}

// Fit, pack, and where the arena is higher than the budget allows, fit again with that much less.
Result<plan::Plan> fit_budget(const ir::Graph& graph, const GraphWorkload& mapped, const PlanOptions& options, Bytes budget,
                              PlanSummary& summary) {
  constexpr int kTries = 8;
  schedule::FitOptions how;
  how.remedies = options.remedies;
  how.order = options.order;
  how.copies = options.copies;
  how.deadline_seconds = options.deadline_seconds;
  how.deterministic = options.deterministic;
  how.seed = options.seed;
  how.threads = std::max(options.threads, 1);
  how.on_better = options.on_better;
  how.stop = options.stop;
  Bytes target = budget;
  Bytes smallest = Bytes::max();
  for (int attempt = 0; attempt < kTries; ++attempt) {
    how.budget = target;
    auto fitted = schedule::fit(mapped.workload, how);
    if (!fitted) {
      if (attempt == 0 || fitted.error().code != ErrorCode::kDoesNotFit) return forward(fitted);
      break;
    }
    PLIMSOLL_TRY(plan::Plan plan, plan::make_plan(graph, mapped, fitted->schedule, packing_options(options, Bytes(0))));
    smallest = std::min(smallest, plan.arena_bytes());
    if (plan.arena_bytes() <= budget) {
      plan.budget = budget;
      summary.floor = fitted->floor;
      for (const ValueId value : fitted->floor.wall) summary.wall.push_back(mapped.workload.value(value).name);
      summary.bound_seconds = fitted->bound_seconds;
      summary.counts = schedule::count(fitted->schedule);
      return plan;
    }
    target = target - (plan.arena_bytes() - budget);
  }
  return fail(ErrorCode::kNoAnswer, "no plan within {} was found; the smallest found needs {} ({} bytes)", human(budget),
              human(smallest), smallest);
}

}  // namespace

Result<PlannedGraph> plan_graph(const ir::Graph& graph, const PlanOptions& options) {
  const Stopwatch watch;
  PlannedGraph out;
  PLIMSOLL_TRY(const GraphWorkload apart, workload_of(graph, options, false));
  PLIMSOLL_TRY(const GraphWorkload mapped, workload_of(graph, options, options.in_place));
  const schedule::Schedule natural_apart = schedule::keep_all(apart.workload);
  const schedule::Schedule natural = schedule::keep_all(mapped.workload);
  out.summary.baseline = sum_of_buffers(apart, natural_apart);
  out.summary.in_place = sum_of_buffers(mapped, natural);
  PLIMSOLL_TRY(out.summary.shared, greedy_height(graph, apart, natural_apart));
  PLIMSOLL_TRY(out.summary.both, greedy_height(graph, mapped, natural));

  PLIMSOLL_TRY(plan::Plan keep_all, plan_keep_all(graph, mapped, options));
  out.summary.keep_all = keep_all.arena_bytes();
  out.summary.keep_all_seconds = natural.seconds;
  if (options.budget.empty()) {
    PLIMSOLL_TRY(out.plan, checked(std::move(keep_all)));
  } else {
    PLIMSOLL_TRY(const Bytes budget, parse_byte_size(options.budget, out.summary.keep_all));
    if (keep_all.arena_bytes() <= budget) {
      keep_all.budget = budget;
      PLIMSOLL_TRY(out.plan, checked(std::move(keep_all)));
    } else {
      PLIMSOLL_TRY(out.plan, checked(fit_budget(graph, mapped, options, budget, out.summary)));
    }
  }
  out.summary.plan_seconds = watch.seconds();
  return out;
}

}  // namespace plimsoll::api
