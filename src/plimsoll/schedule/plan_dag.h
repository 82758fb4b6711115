// Planning a user's own weighted DAG: read -> fit -> check -> write, and the summary of it.
//
// What `plimsoll plan --dag` does, as a library call. The schedule that is reported has been
// replayed by the independent verifier (schedule/verify_schedule.h) before anybody sees it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/schedule/fit.h"

namespace plimsoll::schedule {

struct PlanDagOptions {
  std::filesystem::path file;
  std::string budget;  // "80%", "1.5GiB"; empty: keep everything
  // the least memory for at most this fraction more time, instead of a budget
  std::optional<double> slowdown;
  FitOptions fit;  // its budget and deadline are set from the others
  double deadline_seconds = 3;
  bool lossy = false;                      // lossy encodings too
  std::vector<std::string> lossy_forms{};  // only these of them; none: all that the file offers
  std::string strategy;                    // a classic checkpointing strategy instead of a search
  bool prove = false;
  bool sweep = false;
  std::filesystem::path output;  // where the schedule goes; empty: nowhere
};

struct NamedBytes {
  std::string name;
  Bytes bytes;
};

struct PlanDagPoint {
  Bytes budget_bytes;
  Bytes peak_bytes;
  Bytes host_peak_bytes;
  double predicted_seconds = 0;
  double overhead = 0;
  double lower_bound_overhead = 0;
  bool proven_optimal = false;  // reached a bound of its order
  std::int64_t recomputed = 0;
  Bytes swapped_bytes;
  Bytes encoded_bytes;
  std::int64_t buffers = 0;
  std::int64_t steps = 0;
};

// What `prove` was asked for, and came to.
struct DagProof {
  enum class Result {
    kOptimum,  // no plan of this order within the budget is faster than the one reported
    kBound,    // none is faster than bound_seconds
    kNothing,  // the solver said nothing useful in the time given
  };
  Result result = Result::kNothing;
  double bound_seconds = 0;
  double seconds = 0;  // that the solver was given
};
const char* name(DagProof::Result result);

struct PlanDagReport {
  Bytes baseline_bytes;  // every value in memory of its own
  Bytes no_recompute_bytes;
  double no_recompute_seconds = 0;
  Bytes smallest_budget_bytes;
  Bytes bound_bytes;                 // no plan needs less
  std::vector<NamedBytes> limiting;  // tensors that must be there at once for it
  double plan_seconds = 0;
  std::vector<PlanDagPoint> points;  // one, or the curve of a sweep, largest budget first
  std::optional<Error> failure;      // did not fit, or no answer: the rest still says why
  Bytes budget_bytes;
  std::optional<double> slowdown;  // that was allowed
  std::int64_t split_tasks = 0;    // that run in parts
  std::int64_t split_parts = 0;
  std::optional<DagProof> proof;
  // After a failure with fewer techniques: what a plan with all of them needs.
  std::optional<Bytes> all_techniques_bytes;
  bool interrupted = false;  // the user ended the search: no status is "optimal" then
};

Result<PlanDagReport> plan_dag(const PlanDagOptions& options);

std::string to_json(const PlanDagReport& report, bool sweep);

}  // namespace plimsoll::schedule
