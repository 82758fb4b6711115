#include "plimsoll/api/plan_report.h"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "plimsoll/base/json.h"
#include "plimsoll/ops/collective/collective.h"
#include "plimsoll/ops/collective/shard.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::api {
namespace {

nlohmann::ordered_json object_of(const PlanReport& report) {
  nlohmann::ordered_json out{
      {"schema", 1},
      {"model", report.model},
      {"baseline_bytes", report.baseline.value},
      {"inplace_bytes", report.in_place.value},
      {"shared_bytes", report.shared.value},
      {"inplace_shared_bytes", report.both.value},
      {"load_bytes", report.live.value},
      {"lower_bound_bytes", report.lower_bound.value},
      {"arena_bytes", report.arena.value},
      {"peak_bytes", report.arena.value},
      {"buffers", report.buffers},
      {"steps", report.steps},
      {"plan_seconds", report.plan_seconds},
      {"status", report.optimal && !report.interrupted ? "optimal" : "feasible"}};
  if (report.interrupted) out["interrupted"] = true;
  for (const auto& [use, bytes] : report.by_use) out["by_kind"][use] = bytes.value;
  out["operators"] = {{"measured", report.measured_operators},
                      {"estimated", report.estimated_operators}};
  out["layout_conversions"] = {{"count", report.conversions.count},
                               {"bytes", report.conversions.bytes.value},
                               {"predicted_seconds", report.conversions.seconds},
                               {"share", report.conversions.share}};
  if (report.encoded_weights.tensors > 0) {
    out["encoded_weights"] = {{"tensors", report.encoded_weights.tensors},
                              {"encoded_bytes", report.encoded_weights.encoded.value},
                              {"decoded_bytes", report.encoded_weights.decoded.value},
                              {"by_form", report.encoded_weights.by_form}};
    for (const EncodedWeightTotals::One& weight : report.encoded_weights.all)
      out["encoded_weights"]["by_tensor"].push_back({{"name", weight.name},
                                                     {"form", weight.form},
                                                     {"encoded_bytes", weight.encoded.value},
                                                     {"decoded_bytes", weight.decoded.value},
                                                     {"predicted_seconds", weight.seconds}});
  }
  if (report.held.value > 0) {
    out["held_bytes"] = report.held.value;
    out["held_fp32_bytes"] = report.held_as_fp32.value;
  }
  if (report.placement) {
    const plan::PlacementSummary& placed = *report.placement;
    out["placement"] = {{"choice", plan::name(placed.choice)},
                        {"predicted_seconds", placed.seconds},
                        {"home_seconds", placed.home_seconds}};
    if (placed.greedy_seconds > 0) out["placement"]["greedy_seconds"] = placed.greedy_seconds;
    for (const plan::MemorySummary& memory : placed.memories) {
      out["placement"]["memories"].push_back({{"name", memory.name},
                                              {"capacity_bytes", memory.capacity.value},
                                              {"arena_bytes", memory.bytes.value},
                                              {"windows", memory.windows},
                                              {"copied_in_bytes", memory.copied_in.value},
                                              {"copied_out_bytes", memory.copied_out.value}});
    }
  }
  if (report.ranks > 1) {
    out["ranks"] = report.ranks;
    out["messages"] = report.messages;
    out["sharded"] = report.sharded;
    out["wire_bytes"] = report.wire.value;
    out["communication_seconds"] = report.communication_seconds;
    out["exposed_seconds"] = report.exposed_seconds;
    out["predicted_seconds"] = report.predicted_seconds;
  }
  if (!report.constrained) return out;
  const double no_recompute = report.no_recompute_seconds;
  out["budget_bytes"] = report.budget.value;
  if (report.slowdown) out["slowdown"] = *report.slowdown;
  out["host_peak_bytes"] = report.host_peak.value;
  out["keep_all_bytes"] = report.no_recompute.value;
  out["keep_all_seconds"] = no_recompute;
  out["predicted_seconds"] = report.predicted_seconds;
  out["overhead"] = report.overhead();
  out["lower_bound_overhead"] =
      no_recompute > 0 && report.bound_seconds > 0 ? report.bound_seconds / no_recompute - 1 : 0.0;
  out["recomputed"] = report.recomputed;
  out["swapped_bytes"] = report.swapped.value;
  out["encoded_bytes"] = report.encoded.value;
  out["split"] = {{"operators", report.split_operators}, {"parts", report.split_parts}};
  out["lossy"] = report.lossy;
  if (report.memory_bound) {
    out["smallest_budget_bytes"] = report.memory_bound->value;
    out["wall"] = report.limiting;
  }
  return out;
}

LayoutConversions conversions_of(const plan::Plan& plan) {
  LayoutConversions out;
  double computing = 0;
  for (const plan::PlanStep& step : plan.steps) {
    if (!step.node.valid()) continue;
    computing += step.seconds;
    const ir::Node& node = plan.graph.node(step.node);
    if (node.op != "reorder") continue;
    ++out.count;
    out.bytes += ir::bytes_of(plan.graph.value(node.outputs[0]).type);
    out.seconds += step.seconds;
  }
  if (computing > 0) out.share = out.seconds / computing;
  return out;
}

void add_ranks_of_plan(const plan::Plan& plan, PlanReport& out) {
  double computing = 0;
  for (const plan::PlanStep& step : plan.steps) {
    const ir::Node* node = step.node.valid() ? &plan.graph.node(step.node) : nullptr;
    if (node == nullptr || !ops::is_collective(node->op) || node->op == "own_part") {
      if (step.stream == 0) computing += step.seconds;
      continue;
    }
    out.ranks = ops::attributes_of(*node).integer("ranks");
    ++out.messages;
    out.communication_seconds += step.seconds;
    Bytes bytes;
    if (ops::is_shard_operator(node->op)) {
      bytes = ops::run_bytes(plan.graph, *node);
    } else {
      for (const ValueId id : node->outputs) bytes += ir::bytes_of(plan.graph.value(id).type);
    }
    const double share = static_cast<double>(out.ranks - 1) / static_cast<double>(out.ranks);
    const double turns = node->op == "all_reduce" ? 2 : 1;
    out.wire += Bytes(static_cast<std::int64_t>(turns * share * static_cast<double>(bytes.value)));
  }
  bool moments = false, weights = false;
  for (const ops::ShardedState& part : ops::sharded_state(plan.graph))
    (plan.graph.value(part.value).kind == ir::ValueKind::kWeight ? weights : moments) = true;
  if (moments) out.sharded.emplace_back("optimizer");
  if (weights) out.sharded.emplace_back("weights");
  out.exposed_seconds = std::max(0.0, plan.predicted_seconds - computing);
}

// Of the operators that read them encoded, recomputed ones each time.
void add_seconds(const plan::Plan& plan, EncodedWeightTotals& out) {
  if (out.all.empty()) return;
  std::map<std::string, double> by_name;
  for (const plan::PlanStep& step : plan.steps) {
    if (!step.node.valid()) continue;
    for (const ValueId id : plan.graph.node(step.node).inputs)
      if (id.valid()) by_name[plan.graph.value(id).name] += step.seconds;
  }
  for (EncodedWeightTotals::One& weight : out.all) weight.seconds = by_name[weight.name];
}

}  // namespace

PlanReport report_of(const plan::PlannedGraph& planned) {
  const plan::Plan& plan = planned.plan;
  const plan::PlanSummary& summary = planned.summary;
  PlanReport out;
  out.conversions = conversions_of(plan);
  out.encoded_weights = encoded_weight_totals(plan.graph);
  add_seconds(plan, out.encoded_weights);
  out.model = plan.graph.name;
  out.steps = std::ssize(plan.steps);
  out.buffers = std::ssize(plan.buffers);
  out.plan_seconds = summary.plan_seconds;
  out.baseline = summary.baseline;
  out.in_place = summary.in_place;
  out.shared = summary.shared;
  out.both = summary.both;
  out.no_recompute = summary.no_recompute;
  out.arena = plan.arena_bytes();
  out.live = plan.proof.load;
  out.lower_bound = plan.proof.lower_bound;
  out.optimal = plan.proof.optimal;
  const std::vector<Bytes> by_use = plan::bytes_by_use_at_peak(plan);
  for (std::size_t use = 0; use < by_use.size(); ++use)
    out.by_use.emplace_back(plan::name(static_cast<plan::Use>(use)), by_use[use]);
  out.measured_operators = summary.measured_operators;
  out.estimated_operators = summary.estimated_operators;
  const plan::Held held = plan::held_for_backward(plan);
  out.held = held.bytes;
  out.held_as_fp32 = held.as_fp32;
  add_ranks_of_plan(plan, out);
  out.constrained = plan.budget.value > 0 || !summary.strategy.empty();
  out.budget = plan.budget;
  out.slowdown = summary.slowdown;
  out.host_peak = plan.arenas.size() > 1 ? plan.arenas[1].bytes : Bytes(0);
  out.no_recompute_seconds = summary.no_recompute_seconds;
  out.predicted_seconds = plan.predicted_seconds;
  out.bound_seconds = summary.bound_seconds;
  out.recomputed = summary.counts.recomputed;
  out.swapped = summary.counts.copied_out;
  out.encoded = summary.counts.encoded;
  out.split_operators = summary.split_operators;
  out.split_parts = summary.split_parts;
  out.lossy = plan::lossy_forms_of(plan);
  if (summary.memory_bound) out.memory_bound = summary.memory_bound->bytes;
  out.placement = summary.placement;
  out.limiting = summary.limiting;
  out.limiting_bytes = summary.limiting_bytes;
  return out;
}

std::vector<PlanReport> reports_of(const std::vector<plan::PlannedGraph>& curve) {
  std::vector<PlanReport> out;
  for (const plan::PlannedGraph& point : curve) out.push_back(report_of(point));
  return out;
}

std::string to_json(const PlanReport& report,
                    const std::function<void(nlohmann::ordered_json&)>& more) {
  nlohmann::ordered_json out = object_of(report);
  if (more) more(out);
  return json_text(out, 2);
}

std::string to_json(const std::vector<PlanReport>& curve) {
  nlohmann::ordered_json out =
      curve.empty() ? nlohmann::ordered_json{{"schema", 1}} : object_of(curve.front());
  out["points"] = nlohmann::ordered_json::array();
  for (const PlanReport& point : curve) out["points"].push_back(object_of(point));
  if (!curve.empty()) out["smallest_budget_bytes"] = curve.back().arena.value;
  return json_text(out, 2);
}

std::string to_json(const plan::PlanFailure& failure) {
  nlohmann::ordered_json out{
      {"schema", 1},
      {"status", failure.error.code == ErrorCode::kDoesNotFit ? "does_not_fit" : "no_answer"},
      {"message", failure.error.message},
      {"budget_bytes", failure.budget.value},
      {"keep_all_bytes", failure.no_recompute.value},
      {"keep_all_seconds", failure.no_recompute_seconds},
      {"floor_bytes", failure.lower_bound.value},
      {"smallest_budget_bytes", failure.smallest.value},
      {"wall", failure.limiting}};
  if (failure.all_techniques.value > 0) out["all_remedies_bytes"] = failure.all_techniques.value;
  return json_text(out, 2);
}

}  // namespace plimsoll::api
