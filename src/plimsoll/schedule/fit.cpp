#include "plimsoll/schedule/fit.h"

#include <algorithm>
#include <optional>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/check.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/schedule/bounds/time_bound.h"
#include "plimsoll/schedule/least_budget.h"
#include "plimsoll/schedule/search/action_list.h"
#include "plimsoll/schedule/search/order.h"
#include "plimsoll/schedule/search/problem.h"
#include "plimsoll/schedule/search/replay.h"
#include "plimsoll/schedule/search/schedule_optimizer.h"

namespace plimsoll::schedule {
namespace {

double bound(const Problem& problem, const std::vector<Index>& order, double kept_seconds,
             double seconds, Bytes budget) {
  return kept_seconds + cover_bound(problem, Sequence(problem, order), budget.value,
                                    std::max(0.0, seconds - kept_seconds));
}

Fit finish(const Workload& workload, const FitOptions& options, ScheduleOptimizer& optimizer,
           Candidate candidate, const Schedule& kept, Bytes budget, double spent) {
  Fit fit;
  fit.schedule = std::move(candidate.schedule);
  for (Index task : candidate.order) fit.order.push_back(TaskId(static_cast<std::size_t>(task)));
  fit.keep_all_bytes = kept.peak_bytes;
  fit.keep_all_seconds = kept.seconds;
  fit.memory_bound = memory_bound(workload, options.remedies);
  if (options.bound) {
    fit.bound_seconds =
        bound(optimizer.problem(), candidate.order, kept.seconds, fit.schedule.seconds, budget);
    fit.optimal = fit.schedule.seconds <= fit.bound_seconds * (1 + 1e-9);
  }
  fit.seconds_spent = spent;
  return fit;
}

tl::unexpected<Error> does_not_fit(const Workload& workload, Bytes budget,
                                   const MemoryBound& least) {
  std::string limiting;
  for (std::size_t i = 0; i < least.limiting.size() && i < 4; ++i) {
    limiting += fmt::format("{}'{}' {}", i == 0 ? "" : ", ", workload.value(least.limiting[i]).name,
                            human(workload.value(least.limiting[i]).bytes));
  }
  const std::string where = least.task.valid()
                                ? fmt::format("task '{}' alone", workload.task(least.task).name)
                                : "what must be kept";
  return fail(ErrorCode::kDoesNotFit,
              "{} bytes is too little: {} needs {} ({}); no plan can do with less than {}", budget,
              where, human(least.bytes), limiting, least.bytes);
}

// One candidate per rung of a ladder that depends on the workload only. Counted work where it has
// to be repeatable, else an even share of the deadline for every rung.
std::vector<Candidate> climb(ScheduleOptimizer& optimizer, const FitOptions& options,
                             const Schedule& kept, Bytes least) {
  const Stopwatch watch;
  std::vector<Candidate> candidates;
  candidates.push_back(optimizer.keep_all());
  Effort effort = counted_effort(optimizer.problem(), options.search);
  effort.counted = options.deterministic;
  effort.restarts *= options.work;
  effort.moves *= options.work;
  const int rungs =
      options.deterministic ? options.search.counted_rungs : options.search.timed_rungs;
  for (int rung = 0; rung < rungs; ++rung) {
    const Bytes budget = step_down(kept.peak_bytes, least, rung + 1, rungs);
    if (budget == step_down(kept.peak_bytes, least, rung, rungs)) continue;
    effort.seconds = (options.deadline_seconds - watch.seconds()) / (rungs - rung);
    auto found = optimizer.search(budget, effort, options.seed);
    if (found) candidates.push_back(std::move(*found));
    if (options.stop != nullptr && options.stop->load()) break;
  }
  return candidates;
}

const Candidate* fastest_within(const std::vector<Candidate>& candidates, Bytes budget) {
  const Candidate* best = nullptr;
  for (const Candidate& candidate : candidates) {
    if (candidate.schedule.peak_bytes > budget) continue;
    if (best == nullptr || faster(candidate.schedule, best->schedule)) best = &candidate;
  }
  return best;
}

}  // namespace

double Fit::overhead() const {
  return keep_all_seconds > 0 ? schedule.seconds / keep_all_seconds - 1 : 0;
}

double Fit::bound_overhead() const {
  return keep_all_seconds > 0 ? bound_seconds / keep_all_seconds - 1 : 0;
}

Schedule keep_all(const Workload& workload) {
  const Problem problem(workload, Remedies{}, CopyRates{});
  return link(problem, run_in_order(given_sequence(problem).order));
}

std::vector<TaskId> mirrored_order(const Workload& workload) {
  const Problem problem(workload, Remedies{}, CopyRates{});
  std::vector<TaskId> out;
  for (const Index task : mirror_order(problem, first_backward_task(workload, problem)))
    out.emplace_back(static_cast<std::size_t>(task));
  return out;
}

Bytes smallest_found(const Workload& workload, const FitOptions& options) {
  ScheduleOptimizer optimizer(workload, options);
  return optimizer.smallest_found(memory_bound(workload, options.remedies).bytes);
}

Result<Fit> fit(const Workload& workload, const FitOptions& options) {
  PLIMSOLL_RETURN_IF_ERROR(verify(workload));
  PLIMSOLL_CHECK(options.weights.empty() || options.weights.size() == workload.values.size(),
                 "weights are given for {} of {} values", options.weights.size(),
                 workload.values.size());
  const Stopwatch watch;
  ScheduleOptimizer optimizer(workload, options);
  const Schedule& kept = optimizer.keep_all().schedule;
  const MemoryBound least = memory_bound(workload, options.remedies);
  if (options.budget < least.bytes) return does_not_fit(workload, options.budget, least);
  std::optional<Candidate> found;
  if (options.deterministic) {
    const std::vector<Candidate> candidates = climb(optimizer, options, kept, least.bytes);
    if (const Candidate* best = fastest_within(candidates, options.budget)) found = *best;
  } else {
    Effort effort;
    effort.seconds = options.deadline_seconds;
    found = optimizer.search(options.budget, effort, options.seed);
  }
  if (!found && !options.on_none && !options.bound)
    return fail(ErrorCode::kNoAnswer, "no plan found within {} bytes in the time given",
                options.budget);
  if (!found) {
    const Bytes smallest = optimizer.smallest_found(options.budget);
    if (options.on_none) options.on_none(smallest);
    return fail(
        ErrorCode::kNoAnswer,
        "no plan found within {} bytes in the time given; the smallest found needs {} bytes, "
        "and {} bytes are needed by any plan",
        options.budget, smallest, least.bytes);
  }
  Fit out = finish(workload, options, optimizer, std::move(*found), kept, options.budget,
                   watch.seconds());
  if (!options.deterministic) out.runners_up = optimizer.take_runners_up();
  return out;
}

Result<std::vector<Fit>> task_by_task(const Workload& workload, const FitOptions& options) {
  PLIMSOLL_RETURN_IF_ERROR(verify(workload));
  const Stopwatch watch;
  std::vector<Fit> out;
  if (!options.remedies.swap) return out;
  ScheduleOptimizer optimizer(workload, options);
  for (const double share : options.search.stay_shares) {
    const Bytes stays(static_cast<std::int64_t>(share * static_cast<double>(options.budget.value)));
    std::optional<Candidate> found = optimizer.task_by_task(options.budget, stays);
    if (!found) continue;
    out.push_back(finish(workload, options, optimizer, std::move(*found),
                         optimizer.keep_all().schedule, options.budget, watch.seconds()));
  }
  return out;
}

double bound_for_order_of(const Schedule& schedule, const Workload& workload,
                          const FitOptions& options) {
  const Problem problem(workload, options.remedies, options.copies);
  std::vector<Index> order;
  for (const Action& action : schedule.actions) {
    if (action.kind == ActionKind::kCompute) order.push_back(static_cast<Index>(action.task.value));
  }
  return bound(problem, order, keep_all(workload).seconds, schedule.seconds, options.budget);
}

Result<std::vector<Fit>> ladder(const Workload& workload, const FitOptions& options) {
  PLIMSOLL_RETURN_IF_ERROR(verify(workload));
  const Stopwatch watch;
  FitOptions counted = options;
  counted.deterministic = true;
  ScheduleOptimizer optimizer(workload, counted);
  const Schedule& kept = optimizer.keep_all().schedule;
  const MemoryBound least = memory_bound(workload, options.remedies);
  if (options.budget < least.bytes) return does_not_fit(workload, options.budget, least);
  std::vector<Candidate> candidates = climb(optimizer, counted, kept, least.bytes);
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return faster(a.schedule, b.schedule); });
  std::vector<Fit> out;
  for (Candidate& candidate : candidates) {
    if (candidate.schedule.peak_bytes > options.budget) continue;
    out.push_back(finish(workload, options, optimizer, std::move(candidate), kept, options.budget,
                         watch.seconds()));
  }
  return out;
}

Result<Fit> least_memory(const Workload& workload, const FitOptions& options, double slowdown) {
  PLIMSOLL_RETURN_IF_ERROR(verify(workload));
  const Stopwatch watch;
  FitOptions how = options;
  how.bound = false;
  ScheduleOptimizer optimizer(workload, how);
  const Candidate kept = optimizer.keep_all();
  // for the digits that are lost by adding seconds in another order
  const double limit = kept.schedule.seconds * (1 + slowdown) * (1 + 1e-9);
  const MemoryBound least = memory_bound(workload, options.remedies);
  std::vector<Candidate> candidates;  // the same for every budget
  if (options.deterministic) candidates = climb(optimizer, how, kept.schedule, least.bytes);
  Candidate best = kept;
  const auto try_budget = [&](Look look, Bytes budget, int left) -> Result<bool> {
    std::optional<Candidate> found;
    if (options.deterministic) {
      if (const Candidate* first = fastest_within(candidates, budget)) found = *first;
    } else {
      Effort effort;
      effort.seconds =
          std::max(0.02, (look.share * options.deadline_seconds - watch.seconds()) / (left + 1));
      found = optimizer.search(budget, effort, look.seed);
    }
    if (!found || found->schedule.seconds > limit) return false;
    if (found->schedule.peak_bytes < best.schedule.peak_bytes) best = std::move(*found);
    return true;
  };
  const Bytes highest = kept.schedule.peak_bytes;
  if (options.deterministic) {
    PLIMSOLL_RETURN_IF_ERROR(bisect_budgets(least.bytes, highest, [&](Bytes budget, int left) {
      return try_budget({}, budget, left);
    }));
  } else {
    PLIMSOLL_RETURN_IF_ERROR(look_twice(
        least.bytes, highest, options.seed, [&] { return best.schedule.peak_bytes; }, try_budget));
  }
  how.bound = options.bound;
  const Bytes peak = best.schedule.peak_bytes;
  return finish(workload, how, optimizer, std::move(best), kept.schedule, peak, watch.seconds());
}

Result<std::vector<Fit>> sweep(const Workload& workload, const FitOptions& options, int points) {
  PLIMSOLL_RETURN_IF_ERROR(verify(workload));
  const Stopwatch watch;
  ScheduleOptimizer optimizer(workload, options);
  const Schedule& kept = optimizer.keep_all().schedule;
  const MemoryBound least = memory_bound(workload, options.remedies);
  const std::vector<Candidate> candidates = climb(optimizer, options, kept, least.bytes);
  std::vector<Fit> curve;
  for (int i = 0; i < points; ++i) {
    const Bytes budget = step_down(kept.peak_bytes, least.bytes, i, points);
    const Candidate* best = fastest_within(candidates, budget);
    if (best == nullptr) break;
    if (!curve.empty() && curve.back().schedule.peak_bytes == best->schedule.peak_bytes) continue;
    curve.push_back(finish(workload, options, optimizer, *best, kept, budget, watch.seconds()));
  }
  return curve;
}

}  // namespace plimsoll::schedule
