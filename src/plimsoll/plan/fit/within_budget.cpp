#include "plimsoll/plan/fit/within_budget.h"

#include <algorithm>

#include <fmt/format.h>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/plan/check_plan.h"
#include "plimsoll/plan/fit/fit_budget.h"
#include "plimsoll/plan/fit/no_recompute_plan.h"
#include "plimsoll/schedule/least_budget.h"
#include "plimsoll/schedule/search/strategies.h"

namespace plimsoll::plan {
namespace {

// What is left of the budget for the arena.
Result<Bytes> room_for_arena(const PlanOptions& options, Bytes whole) {
  PLIMSOLL_TRY(const Bytes budget, parse_byte_size(options.budget, whole));
  return std::max(budget - options.set_aside, Bytes(0));
}

// What a user hears of the arena's room is the budget.
PlanOptions telling_budgets(PlanOptions options) {
  if (options.on_failure && options.set_aside.value > 0) {
    options.on_failure = [tell = options.on_failure,
                          aside = options.set_aside](const PlanFailure& failure) {
      PlanFailure whole = failure;
      for (Bytes* bytes : {&whole.budget, &whole.lower_bound, &whole.smallest}) *bytes += aside;
      if (whole.all_techniques.value > 0) whole.all_techniques += aside;
      tell(whole);
    };
  }
  return options;
}

Result<PlannedGraph> by_strategy(PlannedGraph out, const Workloads& work,
                                 const PlanOptions& options) {
  PLIMSOLL_TRY(const schedule::Schedule classic,
               schedule::run_strategy(work.fitted().workload, options.strategy));
  out.summary.counts = schedule::count(classic);
  out.summary.strategy = options.strategy;
  PLIMSOLL_TRY(const MakePlanOptions packing, packing_options(work.fitted_graph(), options));
  PLIMSOLL_TRY(out.plan, make_plan(work.fitted_graph(), work.fitted(), classic, packing));
  if (!options.budget.empty()) {
    PLIMSOLL_TRY(const Bytes room, room_for_arena(options, out.summary.no_recompute));
    out.plan.budget = room + options.set_aside;
    if (out.plan.arena_bytes() > room) {
      return fail(ErrorCode::kNoAnswer, "strategy '{}' needs {}, the budget is {}",
                  options.strategy, human(out.plan.arena_bytes() + options.set_aside),
                  human(out.plan.budget));
    }
  }
  PLIMSOLL_RETURN_IF_ERROR(spread(out.plan, options));
  return out;
}

bool is_miss(const Error& error) {
  return error.code == ErrorCode::kDoesNotFit || error.code == ErrorCode::kNoAnswer;
}

Result<PlannedGraph> fitted(PlannedGraph out, const Workloads& work, PlanOptions options,
                            Bytes room) {
  options.deadline_seconds = std::max(0.05, options.deadline_seconds - work.watch.seconds());
  options = telling_budgets(std::move(options));
  auto plan = fit_budget(work.fitted_graph(), work.fitted(), options, room, out.summary);
  if (!plan && is_miss(plan.error()) && (options.set_aside.value > 0 || !options.advice.empty())) {
    std::string message = plan.error().message;
    if (options.set_aside.value > 0)
      message += fmt::format("; loading weights takes {} more, of a budget of {} in all",
                             human(options.set_aside), human(room + options.set_aside));
    if (!options.advice.empty()) message += "; " + options.advice;
    return fail(plan.error().code, "{}", message);
  }
  if (!plan) return forward(plan);
  out.plan = std::move(*plan);
  out.plan.budget = room + options.set_aside;
  return out;
}

// The smallest arena among the plans that are fast enough.
Result<PlannedGraph> fast_enough(PlannedGraph best, const Workloads& work,
                                 const PlanOptions& options) {
  // for the digits that are lost by adding seconds in another order
  constexpr double kRounding = 1e-9;
  const double limit =
      best.summary.no_recompute_seconds * (1 + *options.slowdown) * (1 + kRounding);
  const schedule::MemoryBound bound =
      schedule::memory_bound(work.fitted().workload, options.remedies);
  best.summary.slowdown = options.slowdown;
  // A graph in parts is held against the graph as it is, and may be slower whatever the memory.
  if (seconds_of(best.plan, options.copy_tax) > limit)
    return fail(ErrorCode::kNoAnswer, "no plan takes at most {:.3g} % more time",
                100 * *options.slowdown);
  std::vector<schedule::Fit> candidates;  // the same for every budget
  if (options.deterministic) {
    PLIMSOLL_TRY(candidates, deterministic_candidates(work.fitted(), options));
  }
  const Bytes highest = best.plan.arena_bytes();
  const auto try_budget = [&](schedule::Look look, Bytes budget, int left) -> Result<bool> {
    PlanOptions one = options;
    one.seed = look.seed;
    one.on_failure = nullptr;
    one.persist = false;
    one.deadline_seconds =
        std::max(0.05, (look.share * options.deadline_seconds - work.watch.seconds()) / (left + 1));
    PlannedGraph next{{}, best.summary};
    auto plan = fit_budget(work.fitted_graph(), work.fitted(), one, budget, next.summary,
                           options.deterministic ? &candidates : nullptr);
    if (!plan && is_miss(plan.error())) return false;
    if (!plan) return forward(plan);
    if (seconds_of(*plan, options.copy_tax) > limit) return false;
    next.plan = std::move(*plan);
    if (next.plan.arena_bytes() < best.plan.arena_bytes()) best = std::move(next);
    return true;
  };
  if (options.deterministic) {
    PLIMSOLL_RETURN_IF_ERROR(
        schedule::bisect_budgets(bound.bytes, highest, [&](Bytes budget, int left) {
          return try_budget({1, options.seed}, budget, left);
        }));
  } else {
    PLIMSOLL_RETURN_IF_ERROR(schedule::look_twice(
        bound.bytes, highest, options.seed, [&] { return best.plan.arena_bytes(); }, try_budget));
  }
  if (best.plan.budget.value == 0) PLIMSOLL_RETURN_IF_ERROR(spread(best.plan, options));
  best.plan.budget = best.plan.arena_bytes();
  return best;
}

}  // namespace

double seconds_of(const Plan& plan, double copy_tax) {
  double copying = 0;
  for (const PlanStep& step : plan.steps) {
    if (step.kind == StepKind::kCopyOut || step.kind == StepKind::kCopyIn) copying += step.seconds;
  }
  return plan.predicted_seconds + copy_tax * copying;
}

Result<PlannedGraph> within_budget(PlannedGraph no_recompute, const Workloads& work,
                                   const PlanOptions& options) {
  if (!options.strategy.empty()) return by_strategy(std::move(no_recompute), work, options);
  if (options.slowdown) return fast_enough(std::move(no_recompute), work, options);
  if (options.budget.empty()) return no_recompute;
  PLIMSOLL_TRY(const Bytes room, room_for_arena(options, no_recompute.summary.no_recompute));
  if (no_recompute.plan.arena_bytes() > room)
    return fitted(std::move(no_recompute), work, options, room);
  no_recompute.plan.budget = room + options.set_aside;
  PLIMSOLL_RETURN_IF_ERROR(spread(no_recompute.plan, options));
  return no_recompute;
}

Result<bool> is_hopeless(const Workloads& work, const PlanOptions& options) {
  if (options.budget.empty() || !options.strategy.empty()) return false;
  // A share of the arena is at most that share of what is packed without a search.
  PLIMSOLL_TRY(const Bytes arena, greedy_arena(work));
  PLIMSOLL_TRY(const Bytes room, room_for_arena(options, arena));
  return room < schedule::memory_bound(work.fitted().workload, options.remedies).bytes;
}

Result<Plan> checked(Result<Plan> plan) {
  if (!plan) return plan;
  const PlanCheck check = check_plan(*plan);
  if (!check.ok())
    return fail(ErrorCode::kInternal, "the planner made a wrong plan, please report it: {}",
                check.problems.front());
  return plan;
}

Result<std::vector<PlannedGraph>> sweep(const Workloads& work, const PlanOptions& options,
                                        int points) {
  PlanOptions how = options;
  how.budget.clear();
  PLIMSOLL_TRY(PlannedGraph first, no_recompute_plan(work, how));
  PLIMSOLL_TRY(first, within_budget(std::move(first), work, how));
  PLIMSOLL_TRY(first.plan, checked(std::move(first.plan)));
  first.summary.plan_seconds = work.watch.seconds();
  const Bytes highest = first.plan.arena_bytes();
  const Bytes lowest = schedule::memory_bound(work.fitted().workload, options.remedies).bytes;
  std::vector<PlannedGraph> found;
  first.plan.budget = highest;
  found.push_back(std::move(first));
  std::vector<schedule::Fit> candidates;  // the same for every point
  if (options.deterministic) {
    PLIMSOLL_TRY(candidates, deterministic_candidates(work.fitted(), options));
  }
  for (int point = 1; point < points; ++point) {
    const Bytes budget(highest.value - (highest.value - lowest.value) / points * point);
    PlanOptions one = options;
    one.deadline_seconds =
        std::max(0.05, (options.deadline_seconds - work.watch.seconds()) / (points - point));
    PlannedGraph next{{}, found.front().summary};
    one.on_failure = nullptr;  // the smallest that works ends the curve
    auto plan = checked(fit_budget(work.fitted_graph(), work.fitted(), one, budget, next.summary,
                                   options.deterministic ? &candidates : nullptr));
    if (!plan) break;
    next.plan = std::move(*plan);
    next.summary.plan_seconds = work.watch.seconds();
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

}  // namespace plimsoll::plan
