// What is said about a plan: the numbers of the table that `plimsoll plan` prints, and the same as
// the JSON object of `--json`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "plimsoll/api/encoded_weights.h"
#include "plimsoll/plan/fit/plan_options.h"

namespace plimsoll::api {

using plan::MemorySummary;
using plan::PlacementChoice;
using plan::PlacementSummary;

// Tensors that are written again in another layout (rewrite/layouts.h), in one step.
struct LayoutConversions {
  std::int64_t count = 0;
  Bytes bytes;         // of their results
  double seconds = 0;  // as predicted
  double share = 0;    // of all computations
};

struct PlanReport {
  std::string model;
  std::int64_t steps = 0;
  std::int64_t buffers = 0;
  double plan_seconds = 0;
  Bytes baseline;  // every result its own memory
  Bytes in_place;  // results in place, nothing shared
  Bytes shared;    // shared, nothing in place; with `both` 0 where nothing was compared
  Bytes both;
  Bytes no_recompute;  // the arena when nothing is given up
  Bytes arena;
  Bytes live;                // most that is alive at any step
  Bytes lower_bound;         // proven: no arena is smaller
  bool optimal = false;      // the arena, for its schedule
  bool interrupted = false;  // the user ended the search: status is never "optimal" then
  std::vector<std::pair<std::string, Bytes>> by_use;  // at the peak
  std::int64_t measured_operators = 0;
  std::int64_t estimated_operators = 0;
  LayoutConversions conversions;
  EncodedWeightTotals encoded_weights;
  Bytes held;  // for the backward pass; 0: nothing is
  Bytes held_as_fp32;

  // Of several ranks, in a step:
  std::int64_t ranks = 1;
  std::int64_t messages = 0;         // collectives
  std::vector<std::string> sharded;  // of which each rank has a part: "optimizer", "weights"
  Bytes wire;                        // that leave a rank, as a ring sends them
  double communication_seconds = 0;  // in collectives
  double exposed_seconds = 0;        // of these, while nobody computes

  // With a budget or a classic strategy:
  bool constrained = false;
  std::optional<double> slowdown;  // that was allowed, where memory was asked for
  Bytes budget;
  Bytes host_peak;
  double no_recompute_seconds = 0;
  double predicted_seconds = 0;
  double bound_seconds = 0;  // proven for this order; 0: nothing is
  std::int64_t recomputed = 0;
  Bytes swapped;
  Bytes encoded;
  std::int64_t split_operators = 0;  // computed in parts
  std::int64_t split_parts = 0;      // of the one with most
  std::vector<std::string> lossy;
  std::optional<Bytes> memory_bound;  // proven: no plan needs less
  std::vector<std::string> limiting;  // tensors that must be in memory then, largest first
  std::vector<Bytes> limiting_bytes;

  std::optional<plan::PlacementSummary> placement;  // on a device with several memories

  // Slower by this fraction than when everything is kept.
  double overhead() const {
    return no_recompute_seconds > 0 ? predicted_seconds / no_recompute_seconds - 1 : 0;
  }
};

PlanReport report_of(const plan::PlannedGraph& planned);
std::vector<PlanReport> reports_of(const std::vector<plan::PlannedGraph>& curve);

// With more keys where somebody adds them.
std::string to_json(const PlanReport& report,
                    const std::function<void(nlohmann::ordered_json&)>& more = {});
// A sweep: the first point's keys, and all of them under "points".
std::string to_json(const std::vector<PlanReport>& curve);
std::string to_json(const plan::PlanFailure& failure);

}  // namespace plimsoll::api
