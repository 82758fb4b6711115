// What `plimsoll plan` and `plimsoll check` do with a MODEL: the pipeline up to a plan, in each of
// its forms, what is said about it, and the file it goes to.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/api/model_options.h"
#include "plimsoll/api/pipeline.h"
#include "plimsoll/api/plan_report.h"
#include "plimsoll/api/plan_request.h"
#include "plimsoll/api/plan_set.h"
#include "plimsoll/report/classic_figure.h"

namespace plimsoll::api {

struct PlanJob {
  ModelRequest model;
  PlanRequest planning;
  RankRequest ranks;          // on paper
  std::string checkpointing;  // a classic checkpointing strategy instead of a search
  std::string output;         // a file; empty: none
  OnBetter on_better;
  std::function<void(const std::string& json)> on_failure;  // why there is no plan
  std::function<void(std::size_t done, std::size_t all)> on_measuring;
  const std::atomic<bool>* stop = nullptr;
};

struct PlanAnswer {
  PlanReport plan;
  std::string profile;       // whose times they are
  std::string profile_note;  // and what is behind them
  // The largest, where that was asked, and what is known of the next one (largest_batch.h).
  std::int64_t batch = 0;
  std::string next_batch;                    // "proven", "not_found", "deadline", "interrupted"
  std::optional<std::int64_t> failed_batch;  // the smallest for which no plan was found

  double samples_per_second() const {
    return plan.predicted_seconds > 0 ? static_cast<double>(batch) / plan.predicted_seconds : 0;
  }
};
// The report's JSON with the keys of a search for the largest batch.
std::string to_json(const PlanAnswer& largest);

// Tuned where job.planning.tune says so. The file gets the plan.
Result<PlanAnswer> plan_once(const PlanJob& job);
// The largest batch within the budget (largest_batch.h). The file gets its plan.
Result<PlanAnswer> plan_largest_batch(const PlanJob& job);
// The curve from keeping everything to the smallest that works, as JSON in the file.
Result<std::vector<PlanReport>> plan_sweep(const PlanJob& job);
// The classic figure (report/classic_figure.h), as SVG in the file.
Result<report::ClassicFigure> plan_figure(const PlanJob& job, double allowed_overhead);
Result<report::ClassicFigure> figure_of(Pipeline& prepared, const PlanOptions& options,
                                        double allowed_overhead = report::kAllowedOverhead);

// A plan set. The file is its index; the plans lie beside it.
struct PlannedSize {
  std::vector<std::int64_t> sizes;  // by option
  Bytes arena;
  Bytes live;
  bool shared = true;       // at the offsets of the largest
  std::string_view places;  // "shared", "near" or "own" (plan/fit/plan_set.h)
};
Result<std::vector<PlannedSize>> plan_sizes(const PlanJob& job, const SizeGrid& grid);

// The tag walk, the simple planner, step by step as text.
struct TagWalk {
  std::string model;
  std::string text;
};
Result<TagWalk> walk_tags_of(const PlanJob& job);

// The independent verifier on a plan file, or on the plan of a model.
struct CheckReport {
  Bytes peak;
  std::vector<std::string> problems;
};
Result<CheckReport> check_model_or_plan(const ModelRequest& model, const PlanRequest& planning);

}  // namespace plimsoll::api
