#include "plimsoll/schedule/plan_dag.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/file.h"
#include "plimsoll/base/json.h"
#include "plimsoll/schedule/bounds/prove.h"
#include "plimsoll/schedule/least_budget.h"
#include "plimsoll/schedule/schedule_file.h"
#include "plimsoll/schedule/search/strategies.h"
#include "plimsoll/schedule/verify_schedule.h"
#include "plimsoll/schedule/workload/cost_unit.h"
#include "plimsoll/schedule/workload/dag_file.h"
#include "plimsoll/schedule/workload/split_tasks.h"

namespace plimsoll::schedule {
namespace {

PlanDagPoint point_of(const Schedule& chosen, const PlanDagReport& report, Bytes budget) {
  PlanDagPoint point;
  const ScheduleCounts counts = count(chosen);
  point.budget_bytes = budget;
  point.peak_bytes = chosen.peak_bytes;
  point.host_peak_bytes = chosen.host_peak_bytes;
  point.predicted_seconds = chosen.seconds;
  // The same costs added in another order differ in their last bits.
  const double more =
      report.no_recompute_seconds > 0 ? chosen.seconds / report.no_recompute_seconds - 1 : 0;
  point.overhead = std::abs(more) < 1e-12 ? 0 : more;
  point.recomputed = counts.recomputed;
  point.swapped_bytes = counts.copied_out;
  point.encoded_bytes = counts.encoded;
  point.buffers = static_cast<std::int64_t>(chosen.instances.size());
  point.steps = static_cast<std::int64_t>(chosen.actions.size());
  return point;
}

// Of the deadline, for checking and writing what was found.
constexpr double kAfterwards = 0.01;
// Of the deadline, for the search where a proof comes after it.
constexpr double kBeforeProof = 0.4;

// One plan under way: what is read, what is found, what is said about it.
class DagPlanner {
 public:
  // `watch` runs since before the file was read: that takes its part of the deadline too.
  DagPlanner(const PlanDagOptions& options, Workload workload, FitOptions fit,
             const Stopwatch& watch)
      : options_(options), workload_(std::move(workload)), fit_(std::move(fit)), watch_(watch) {
    unit_ = take_out_unit(workload_, fit_.copies);
    if (unit_ == 1 || !fit_.on_better) return;
    fit_.on_better = [tell = fit_.on_better, unit = unit_](FitProgress better) {
      better.seconds *= unit;
      tell(better);
    };
  }

  Result<PlanDagReport> run() {
    if (options_.prove && (options_.budget.empty() || options_.sweep || !options_.strategy.empty()))
      return fail(ErrorCode::kUsage,
                  "--prove is of one plan within a budget: give --budget, without --sweep and "
                  "--checkpointing");
    if (options_.slowdown && (options_.sweep || !options_.strategy.empty()))
      return fail(ErrorCode::kUsage,
                  "--slowdown asks for one plan: leave out --sweep and --checkpointing");
    const Schedule kept = keep_all(workload_);
    report_.no_recompute_bytes = kept.peak_bytes;
    report_.no_recompute_seconds = kept.seconds;
    for (const Value& value : workload_.values) report_.baseline_bytes += value.bytes;
    report_.budget_bytes = kept.peak_bytes;
    if (!options_.budget.empty()) {
      PLIMSOLL_TRY(report_.budget_bytes, parse_byte_size(options_.budget, kept.peak_bytes));
    }
    fit_.budget = report_.budget_bytes;
    const MemoryBound least = memory_bound(workload_, fit_.remedies);
    for (ValueId id : least.limiting)
      report_.limiting.push_back({workload_.value(id).name, workload_.value(id).bytes});
    report_.smallest_budget_bytes = report_.bound_bytes = least.bytes;
    if (fit_.remedies.split && !options_.sweep && options_.strategy.empty() &&
        (!options_.budget.empty() || options_.slowdown))
      PLIMSOLL_RETURN_IF_ERROR(choose_parts());
    const double share = options_.prove ? kBeforeProof : 1 - kAfterwards;
    fit_.deadline_seconds = std::max(0.0, share * options_.deadline_seconds - watch_.seconds());
    PLIMSOLL_RETURN_IF_ERROR(choose(kept));
    report_.plan_seconds = watch_.seconds();
    report_.no_recompute_seconds *= unit_;
    report_.interrupted = options_.fit.stop != nullptr && options_.fit.stop->load();
    if (report_.proof) report_.proof->bound_seconds *= unit_;
    for (PlanDagPoint& point : report_.points) {
      point.predicted_seconds *= unit_;
      if (report_.interrupted) point.proven_optimal = false;
    }
    return std::move(report_);
  }

 private:
  Status choose(const Schedule& kept) {
    if (!options_.strategy.empty()) return by_strategy();
    if (options_.sweep) return by_sweep();
    if (options_.slowdown) return by_slowdown(kept);
    if (options_.budget.empty()) return accept(kept, Bytes::max());
    return by_budget();
  }

  // Looks at tasks in 2, 4, 8, ... parts, briefly, and goes on with the best.
  Status choose_parts() {
    constexpr double kLookShare = 0.1;
    FitOptions look = fit_;
    look.deadline_seconds = kLookShare * options_.deadline_seconds;
    look.on_better = nullptr;
    look.bound = false;
    const auto found_in = [&](const Workload& workload) -> std::optional<Schedule> {
      Result<Fit> found = options_.slowdown ? least_memory(workload, look, *options_.slowdown)
                                            : fit(workload, look);
      return found ? std::optional(std::move(found->schedule)) : std::nullopt;
    };
    const auto is_better = [&](const Schedule& a, const Schedule& b) {
      return options_.slowdown ? a.peak_bytes < b.peak_bytes : a.seconds < b.seconds;
    };
    std::optional<Schedule> best = found_in(workload_);
    std::optional<WorkloadInParts> chosen;
    std::int64_t parts_of_chosen = 0;
    Bytes smallest = memory_bound(workload_, fit_.remedies).bytes;
    for (std::int64_t parts = 2; parts <= most_parts(workload_); parts *= 2) {
      WorkloadInParts split = in_parts(workload_, parts);
      if (split.tasks == 0 || !verify(split.workload)) continue;
      const std::optional<Schedule> found = found_in(split.workload);
      const Bytes bound = memory_bound(split.workload, fit_.remedies).bytes;
      // Where none fits, the one with the lowest bound says why.
      const bool better = found ? !best || is_better(*found, *best) : !best && bound < smallest;
      smallest = std::min(smallest, bound);
      if (!better) continue;
      if (found) best = found;
      chosen = std::move(split);
      parts_of_chosen = parts;
    }
    if (!chosen) return {};
    workload_ = std::move(chosen->workload);
    report_.split_tasks = chosen->tasks;
    report_.split_parts = parts_of_chosen;
    const MemoryBound least = memory_bound(workload_, fit_.remedies);
    report_.limiting.clear();
    for (ValueId id : least.limiting)
      report_.limiting.push_back({workload_.value(id).name, workload_.value(id).bytes});
    report_.smallest_budget_bytes = report_.bound_bytes = least.bytes;
    return {};
  }

  Status accept(const Schedule& chosen, Bytes budget) {
    PLIMSOLL_RETURN_IF_ERROR(verify_schedule(workload_, chosen, budget, fit_.copies));
    report_.points.push_back(
        point_of(chosen, report_, budget == Bytes::max() ? chosen.peak_bytes : budget));
    if (options_.output.empty() || options_.sweep) return {};
    const auto limit = budget == Bytes::max() ? std::nullopt : std::optional(budget);
    return write_file(options_.output, schedule_to_json(workload_, chosen, limit, unit_));
  }

  Status by_strategy() {
    PLIMSOLL_TRY(const Schedule chosen, run_strategy(workload_, options_.strategy));
    const bool bound = !options_.budget.empty();
    if (bound && chosen.peak_bytes > report_.budget_bytes) {
      report_.failure =
          Error{ErrorCode::kNoAnswer,
                fmt::format("strategy '{}' needs {} bytes, the budget is {}", options_.strategy,
                            chosen.peak_bytes, report_.budget_bytes)};
      return {};
    }
    return accept(chosen, bound ? report_.budget_bytes : Bytes::max());
  }

  Status by_sweep() {
    PLIMSOLL_TRY(const std::vector<Fit> curve, sweep(workload_, fit_));
    for (const Fit& fitted : curve) {
      PLIMSOLL_RETURN_IF_ERROR(accept(fitted.schedule, fitted.schedule.peak_bytes));
      report_.points.back().lower_bound_overhead = std::max(0.0, fitted.bound_overhead());
      report_.points.back().proven_optimal = fitted.optimal;
    }
    if (!curve.empty()) report_.smallest_budget_bytes = curve.back().schedule.peak_bytes;
    return {};
  }

  Status by_budget() {
    std::optional<Bytes> smallest;
    fit_.on_none = [&](Bytes found) { smallest = found; };
    const Result<Fit> fitted = fit(workload_, fit_);
    fit_.on_none = nullptr;
    if (!fitted) {
      if (fitted.error().code != ErrorCode::kDoesNotFit &&
          fitted.error().code != ErrorCode::kNoAnswer)
        return forward(fitted);
      report_.failure = fitted.error();
      report_.smallest_budget_bytes = smallest ? *smallest : smallest_found(workload_, fit_);
      if (!smallest)
        report_.failure->message +=
            fmt::format("; the smallest found needs {} bytes", report_.smallest_budget_bytes);
      name_other_techniques();
      return {};
    }
    PLIMSOLL_RETURN_IF_ERROR(accept(fitted->schedule, fit_.budget));
    PlanDagPoint& point = report_.points.back();
    point.lower_bound_overhead = std::max(0.0, fitted->bound_overhead());
    point.proven_optimal = fitted->optimal;
    return options_.prove ? prove(*fitted, point) : Status{};
  }

  // What every technique together could do, where fewer were allowed.
  void name_other_techniques() {
    FitOptions all = fit_;
    all.remedies.recompute = all.remedies.swap = all.remedies.encode = true;
    if (all.remedies == fit_.remedies) return;
    const Bytes found = smallest_found(workload_, all);
    if (found >= report_.smallest_budget_bytes) return;
    report_.all_techniques_bytes = found;
    report_.failure->message += fmt::format("; `--techniques all` fits from {} bytes", found);
  }

  Status by_slowdown(const Schedule& kept) {
    report_.slowdown = options_.slowdown;
    PLIMSOLL_TRY(const Fit least, least_memory(workload_, fit_, *options_.slowdown));
    const Bytes peak = least.schedule.peak_bytes;
    report_.budget_bytes = peak;
    PLIMSOLL_RETURN_IF_ERROR(accept(least.schedule, peak));
    report_.points.back().lower_bound_overhead =
        std::max(0.0, kept.seconds > 0 ? least.bound_seconds / kept.seconds - 1 : 0.0);
    report_.points.back().proven_optimal = least.optimal;
    return {};
  }

  Status prove(const Fit& fitted, PlanDagPoint& point) {
    for (const Value& value : workload_.values) {
      if (fit_.remedies.encode && !value.encodings.empty())
        return fail(ErrorCode::kUsage,
                    "--prove: value '{}' may be encoded, which the proof does not know",
                    value.name);
    }
    ProofOptions how;
    if (fit_.remedies.swap) how.copies = fit_.copies;
    how.stop = options_.fit.stop;
    DagProof& told = report_.proof.emplace();
    told.bound_seconds = fitted.bound_seconds;
    told.seconds = (1 - kAfterwards) * options_.deadline_seconds - watch_.seconds();
    const double begun = watch_.seconds();
    const auto proof = schedule::prove(workload_, fitted.order, fit_.budget, told.seconds, how);
    told.seconds = watch_.seconds() - begun;
    if (!proof) return proof.error().code == ErrorCode::kNoAnswer ? Status{} : forward(proof);
    told.bound_seconds = std::max(told.bound_seconds, proof->bound_seconds);
    const double bound = proof->bound_seconds / fitted.keep_all_seconds - 1;
    point.lower_bound_overhead =
        std::max(point.lower_bound_overhead, std::min(bound, point.overhead));
    point.proven_optimal = fitted.schedule.seconds <= proof->bound_seconds * (1 + 1e-4);
    told.result = point.proven_optimal ? DagProof::Result::kOptimum : DagProof::Result::kBound;
    return {};
  }

  const PlanDagOptions& options_;
  Workload workload_;
  FitOptions fit_;
  Stopwatch watch_;
  double unit_ = 1;       // of the costs that are searched with, in the file's
  PlanDagReport report_;  // its costs are put back into the file's unit at the end
};

nlohmann::json json_of(const PlanDagPoint& point) {
  return {{"budget_bytes", point.budget_bytes.value},
          {"load_bytes", point.peak_bytes.value},
          {"arena_bytes", point.peak_bytes.value},
          {"peak_bytes", point.peak_bytes.value},
          {"host_peak_bytes", point.host_peak_bytes.value},
          {"predicted_seconds", point.predicted_seconds},
          {"overhead", point.overhead},
          {"lower_bound_overhead", point.lower_bound_overhead},
          {"recomputed", point.recomputed},
          {"swapped_bytes", point.swapped_bytes.value},
          {"encoded_bytes", point.encoded_bytes.value},
          {"buffers", point.buffers},
          {"steps", point.steps},
          {"status", point.proven_optimal ? "optimal" : "feasible"}};
}

void keep_lossy_forms(Workload& workload, const std::vector<std::string>& forms) {
  for (Value& value : workload.values) {
    std::erase_if(value.encodings, [&](const Encoding& offer) {
      return !offer.lossless && std::find(forms.begin(), forms.end(), offer.name) == forms.end();
    });
  }
}

}  // namespace

Result<PlanDagReport> plan_dag(const PlanDagOptions& options) {
  const Stopwatch watch;
  PLIMSOLL_TRY(const MappedFile file, MappedFile::open(options.file));
  Result<Workload> workload = read_dag(file.text());
  if (!workload) return forward(workload, options.file.string());
  if (!options.lossy || !options.lossy_forms.empty())
    keep_lossy_forms(*workload, options.lossy_forms);
  return DagPlanner(options, std::move(*workload), options.fit, watch).run();
}

const char* name(DagProof::Result result) {
  switch (result) {
    case DagProof::Result::kOptimum:
      return "optimum";
    case DagProof::Result::kBound:
      return "bound";
    case DagProof::Result::kNothing:
      return "nothing";
  }
  return "unknown";
}

std::string to_json(const PlanDagReport& report, bool sweep) {
  nlohmann::json out = {{"schema", 1},
                        {"baseline_bytes", report.baseline_bytes.value},
                        {"inplace_bytes", report.baseline_bytes.value},
                        {"shared_bytes", report.no_recompute_bytes.value},
                        {"keep_all_bytes", report.no_recompute_bytes.value},
                        {"keep_all_seconds", report.no_recompute_seconds},
                        {"smallest_budget_bytes", report.smallest_budget_bytes.value},
                        {"budget_bytes", report.budget_bytes.value},
                        {"plan_seconds", report.plan_seconds}};
  if (report.interrupted) out["interrupted"] = true;
  if (report.slowdown) out["slowdown"] = *report.slowdown;
  if (report.split_tasks > 0)
    out["split"] = {{"operators", report.split_tasks}, {"parts", report.split_parts}};
  if (report.proof) {
    out["proof"] = {{"result", name(report.proof->result)},
                    {"bound_seconds", report.proof->bound_seconds},
                    {"seconds", report.proof->seconds}};
  }
  out["wall"] = nlohmann::json::array();
  for (const NamedBytes& value : report.limiting)
    out["wall"].push_back({{"name", value.name}, {"bytes", value.bytes.value}});
  if (report.all_techniques_bytes) out["all_remedies_bytes"] = report.all_techniques_bytes->value;
  if (report.failure) {
    out["status"] = report.failure->code == ErrorCode::kDoesNotFit ? "does_not_fit" : "no_answer";
    out["message"] = report.failure->message;
  } else if (sweep) {
    out["points"] = nlohmann::json::array();
    for (const PlanDagPoint& point : report.points) out["points"].push_back(json_of(point));
    out["status"] = "feasible";
  } else if (!report.points.empty()) {
    out.update(json_of(report.points.front()));
  }
  return json_text(out, 1);
}

}  // namespace plimsoll::schedule
