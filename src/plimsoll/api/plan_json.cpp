#include "plimsoll/api/plan_json.h"

#include <nlohmann/json.hpp>

#include "plimsoll/base/json.h"

namespace plimsoll::api {
namespace {

nlohmann::ordered_json object_of(const PlannedGraph& planned) {
  const plan::Plan& plan = planned.plan;
  const PlanSummary& summary = planned.summary;
  nlohmann::ordered_json out{{"schema", 1},
                             {"model", plan.graph.name},
                             {"baseline_bytes", summary.baseline.value},
                             {"inplace_bytes", summary.in_place.value},
                             {"shared_bytes", summary.shared.value},
                             {"inplace_shared_bytes", summary.both.value},
                             {"load_bytes", plan.proof.load.value},
                             {"lower_bound_bytes", plan.proof.lower_bound.value},
                             {"arena_bytes", plan.arena_bytes().value},
                             {"peak_bytes", plan.arena_bytes().value},
                             {"buffers", plan.buffers.size()},
                             {"steps", plan.steps.size()},
                             {"plan_seconds", summary.plan_seconds},
                             {"status", plan.proof.optimal ? "optimal" : "feasible"}};
  const std::vector<Bytes> by_use = plan::bytes_by_use_at_peak(plan);
  for (std::size_t use = 0; use < by_use.size(); ++use) {
    out["by_kind"][std::string(plan::name(static_cast<plan::Use>(use)))] = by_use[use].value;
  }
  out["operators"] = {{"measured", summary.measured_operators},
                      {"estimated", summary.estimated_operators}};
  if (const plan::Held held = plan::held_for_backward(plan); held.bytes.value > 0) {
    out["held_bytes"] = held.bytes.value;
    out["held_fp32_bytes"] = held.as_fp32.value;
  }
  if (plan.budget.value > 0 || !summary.strategy.empty()) {
    const double keep_all = summary.keep_all_seconds;
    out["budget_bytes"] = plan.budget.value;
    out["host_peak_bytes"] = plan.arenas.size() > 1 ? plan.arenas[1].bytes.value : 0;
    out["keep_all_bytes"] = summary.keep_all.value;
    out["keep_all_seconds"] = keep_all;
    out["predicted_seconds"] = plan.predicted_seconds;
    out["overhead"] = keep_all > 0 ? plan.predicted_seconds / keep_all - 1 : 0.0;
    out["lower_bound_overhead"] =
        keep_all > 0 && summary.bound_seconds > 0 ? summary.bound_seconds / keep_all - 1 : 0.0;
    out["recomputed"] = summary.counts.recomputed;
    out["swapped_bytes"] = summary.counts.copied_out.value;
    out["encoded_bytes"] = summary.counts.encoded.value;
    out["lossy"] = plan::lossy_forms_of(plan);
    if (summary.floor) {
      out["smallest_budget_bytes"] = summary.floor->bytes.value;
      out["wall"] = summary.wall;
    }
  }
  return out;
}

}  // namespace

std::string to_json(const PlannedGraph& planned, std::optional<std::int64_t> batch) {
  nlohmann::ordered_json out = object_of(planned);
  if (batch) out["batch"] = *batch;
  return json_text(out, 2);
}

std::string to_json(const std::vector<PlannedGraph>& curve) {
  nlohmann::ordered_json out =
      curve.empty() ? nlohmann::ordered_json{{"schema", 1}} : object_of(curve.front());
  out["points"] = nlohmann::ordered_json::array();
  for (const PlannedGraph& point : curve) out["points"].push_back(object_of(point));
  if (!curve.empty()) out["smallest_budget_bytes"] = curve.back().plan.arena_bytes().value;
  return json_text(out, 2);
}

std::string to_json(const PlanFailure& failure) {
  const nlohmann::ordered_json out{
      {"schema", 1},
      {"status", failure.error.code == ErrorCode::kDoesNotFit ? "does_not_fit" : "no_answer"},
      {"message", failure.error.message},
      {"budget_bytes", failure.budget.value},
      {"keep_all_bytes", failure.keep_all.value},
      {"keep_all_seconds", failure.keep_all_seconds},
      {"floor_bytes", failure.floor.value},
      {"smallest_budget_bytes", failure.smallest.value},
      {"wall", failure.wall}};
  return json_text(out, 2);
}

}  // namespace plimsoll::api
