#include "plimsoll/api/pipeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "plimsoll/api/encoded_weights.h"
#include "plimsoll/api/fit_to_backend.h"
#include "plimsoll/api/graph_planner.h"
#include "plimsoll/api/machine_profile.h"
#include "plimsoll/api/pipeline_device.h"
#include "plimsoll/api/run_device.h"
#include "plimsoll/api/share_among_ranks.h"
#include "plimsoll/api/split_plans.h"
#include "plimsoll/base/clock.h"
#include "plimsoll/base/threads.h"
#include "plimsoll/ir/text.h"
#include "plimsoll/plan/fit/within_budget.h"
#include "plimsoll/profile/find_profile.h"
#include "plimsoll/profile/measure_operators.h"
#include "plimsoll/profile/operator_costs.h"
#include "plimsoll/profile/profile_machine.h"
#include "plimsoll/rewrite/fuse_scatter_add.h"
#include "plimsoll/rewrite/pad_rows.h"
#include "plimsoll/rewrite/simplify.h"
#include "plimsoll/rewrite/split_rows.h"
#include "plimsoll/rewrite/split_updates.h"
#include "plimsoll/rewrite/sync_batch_norm.h"

namespace plimsoll::api {
namespace {

constexpr Bytes kFilePage(4096);
// Of the deadline, on top: to see whether a graph that does not fit does so in parts.
constexpr double kPartsShare = 0.3;

// An update of so many bytes that is such a share of all state is put into parts, and of how many
// times less bytes than it has each of them is.
constexpr Bytes kLeastUpdate(32 << 20);
constexpr std::int64_t kUpdatesShare = 4;
constexpr std::int64_t kUpdateParts = 64;

// Weights and what optimizers keep beside them.
Bytes bytes_of_state(const ir::Graph& graph) {
  Bytes out;
  for (const ir::Value& value : graph.values) {
    if (ir::is_persistent(value.kind)) out += ir::bytes_of(value.type);
  }
  return out;
}

// What a card cannot do yet is said before anything is planned for it.
Status check_techniques(const Pipeline& p, const PlanOptions& how) {
  if (on_card(p) && how.remedies.split)
    return fail(ErrorCode::kUsage,
                "{}: operators are not split there yet; give --techniques recompute,swap",
                p.backend->device().name());
  return {};
}

Result<PlannedGraph> plan_whole(const ir::Graph& graph, const PlanOptions& how) {
  PLIMSOLL_TRY(GraphPlanner planner, GraphPlanner::prepare(graph, how));
  return planner.plan(how);
}

// Tensors are cut where rows end, so padding comes after.
Result<std::vector<rewrite::SplitGraph>> split_by_steps(const Pipeline& p) {
  const bool pads = p.backend && p.backend->rewrites().pads_rows;
  if (!pads) return rewrite::split_ladder(p.model.graph, kSplitLimits);
  PLIMSOLL_TRY(std::vector<rewrite::SplitGraph> out,
               rewrite::split_ladder(rewrite::without_padded_rows(p.model.graph), kSplitLimits));
  for (rewrite::SplitGraph& split : out) {
    PLIMSOLL_TRY(split.graph, rewrite::pad_rows(std::move(split.graph)));
  }
  return out;
}

// What kernels of the parts need, and where operators are measured, what they take.
Status prepare_parts(Pipeline& p, const std::vector<rewrite::SplitGraph>& splits) {
  if (p.own_costs || !p.backend) return {};
  for (const rewrite::SplitGraph& split : splits) {
    PLIMSOLL_TRY(ops::KernelTable more, kernels::kernel_facts(*p.backend, split.graph));
    p.kernels.facts.merge(more.facts);
    if (on_card(p) ? !p.measure : p.device != kMeasured) continue;
    profile::MeasureOptions how;
    how.only_new = true;
    how.threads = resolve_threads(p.request.threads);
    how.on_progress = p.on_measuring;
    if (on_card(p)) how.backend = p.backend.get();
    PLIMSOLL_RETURN_IF_ERROR(profile::measure_operators(split.graph, how, p.profile));
  }
  return {};
}

// The graph with its largest updates in parts, at once and at the bus's pace, where state may be
// swapped and one update is a good share of all that a step needs; decided by the graph alone, so
// that no budget changes the answer.
Result<std::vector<rewrite::SplitGraph>> updates_in_parts(const Pipeline& p,
                                                          const PlanOptions& how) {
  std::vector<rewrite::SplitGraph> out;
  if (!how.remedies.swap || how.budget.empty() || p.ranks.several() || !how.strategy.empty())
    return out;
  const ir::Graph& graph = p.model.graph;
  const Bytes largest = rewrite::largest_update(graph);
  if (largest < kLeastUpdate || largest * kUpdatesShare < bytes_of_state(graph)) return out;
  const Bytes part(largest.value / kUpdateParts);
  for (const double rate : {0.0, how.copies.in_bytes_per_second}) {
    PLIMSOLL_TRY(rewrite::SplitGraph split,
                 rewrite::split_updates(graph, part, {how.seconds, rate}));
    out.push_back(std::move(split));
  }
  return out;
}

bool is_missed(const Result<PlannedGraph>& planned) {
  return !planned && (planned.error().code == ErrorCode::kDoesNotFit ||
                      planned.error().code == ErrorCode::kNoAnswer);
}

// Whether to look at operators in parts once the whole graph has no plan: to answer with them, or
// for an error to name them. Who only asks whether it fits does not wait for that; counted work
// ends with what was asked for, or a smaller budget could give a faster plan.
bool asks_for_parts(const Pipeline& p) {
  const PlanOptions& wanted = p.planning;
  return wanted.persist && !wanted.deterministic && !wanted.budget.empty() &&
         wanted.strategy.empty() && !on_card(p) && (wanted.split_last || p.device != kMeasured);
}

// What is left of the deadline for a graph in parts, when the whole one took some of it.
double rest_of(const PlanOptions& wanted, const Stopwatch& watch) {
  return std::max(kPartsShare * wanted.deadline_seconds, wanted.deadline_seconds - watch.seconds());
}

// The whole graph; where it does not fit, the graph with updates in parts, and with operators in
// parts if those are allowed; else an error that says whether parts would do.
Result<PlannedGraph> planned_whole_first(Pipeline& p) {
  const PlanOptions wanted = with_costs(p, p.planning);
  const bool asks = asks_for_parts(p);
  PLIMSOLL_TRY(const std::vector<rewrite::SplitGraph> updates, updates_in_parts(p, wanted));
  std::optional<plan::PlanFailure> why;
  PlanOptions how = wanted;
  if (((asks && wanted.split_last) || !updates.empty()) && wanted.on_failure)
    how.on_failure = [&why](const plan::PlanFailure& failure) { why = failure; };
  const Stopwatch watch;
  Result<PlannedGraph> whole = plan_whole(p.model.graph, how);
  if (is_missed(whole) && !updates.empty()) {
    PLIMSOLL_RETURN_IF_ERROR(prepare_parts(p, updates));
    PlanOptions rest = with_costs(p, how);
    rest.deadline_seconds = rest_of(wanted, watch);
    whole = plan_best_split(p.model.graph, updates, rest);
  }
  if (!asks || !is_missed(whole)) {
    if (why && is_missed(whole)) wanted.on_failure(*why);
    return whole;
  }
  PLIMSOLL_TRY(const std::vector<rewrite::SplitGraph> splits, split_by_steps(p));
  PLIMSOLL_RETURN_IF_ERROR(prepare_parts(p, splits));
  how = with_costs(p, p.planning);
  how.remedies.split = true;
  how.on_failure = nullptr;
  how.deadline_seconds *= kPartsShare;
  if (wanted.split_last) {
    how.deadline_seconds = rest_of(wanted, watch);
  } else {
    how.persist = false;
    how.on_better = nullptr;
  }
  Result<PlannedGraph> parts = splits.empty() ? whole : plan_best_split(p.model.graph, splits, how);
  if (parts && wanted.split_last) return parts;
  if (why) wanted.on_failure(*why);
  if (!parts) return whole;
  return fail(whole.error().code, "{}; with `split` among the techniques it fits ({} bytes)",
              whole.error().message, parts->plan.arena_bytes());
}

Result<PlannedGraph> planned_in_one_memory(Pipeline& p) {
  PLIMSOLL_RETURN_IF_ERROR(check_techniques(p, p.planning));
  if (!may_split(p.planning)) return planned_whole_first(p);
  PLIMSOLL_TRY(std::vector<rewrite::SplitGraph> splits, split_by_steps(p));
  PLIMSOLL_RETURN_IF_ERROR(prepare_parts(p, splits));
  const PlanOptions how = with_costs(p, p.planning);
  if (splits.empty()) return plan_whole(p.model.graph, how);
  return plan_best_split(p.model.graph, splits, how);
}

Result<std::vector<PlannedGraph>> curve_of(const ir::Graph& graph, const PlanOptions& how) {
  PLIMSOLL_TRY(std::optional<ir::Graph> fitted, with_masks(graph, how));
  PLIMSOLL_TRY(const plan::Workloads work, plan::make_workloads(graph, std::move(fitted), how));
  return plan::sweep(work, how);
}

Result<bool> is_hopeless(const Pipeline& p) {
  if (p.planning.budget.empty() || may_split(p.planning) || p.planning.split_last) return false;
  const PlanOptions how = with_costs(p, p.planning);
  PLIMSOLL_TRY(std::optional<ir::Graph> fitted, with_masks(p.model.graph, how));
  PLIMSOLL_TRY(const plan::Workloads work,
               plan::make_workloads(p.model.graph, std::move(fitted), how));
  return plan::is_hopeless(work, how);
}

// What operators take on the device: known for a name, timed now for `measured` and for a card.
Result<schedule::DeviceProfile> profile_of(Pipeline& p, int threads) {
  if (on_card(p)) return profile_of_card(p);
  if (p.device == "cpu") return profile_of_cpu(p.measure ? p.request : ModelRequest{});
  if (p.device != kMeasured) return profile_named(p);
  // A budget that is too small is too small whatever operators take; the planner says why.
  PLIMSOLL_TRY(p.profile, profile::find_profile("cpu"));
  PLIMSOLL_TRY(const bool hopeless, is_hopeless(p));
  if (hopeless) return p.profile;
  PLIMSOLL_TRY(schedule::DeviceProfile out,
               profile::profile_machine({.threads = threads, .on_progress = {}}));
  PLIMSOLL_RETURN_IF_ERROR(
      profile::measure_operators(p.model.graph, {threads, p.on_measuring, nullptr}, out));
  return out;
}

// On a device with several memories every buffer gets its place among them.
Status place(const Pipeline& p, const PlanOptions& how, PlannedGraph& planned) {
  if (p.profile.memories.empty() && how.placement)
    return fail(ErrorCode::kUsage,
                "--placement: '{}' has one memory; name a --device with several, such as "
                "accelerator",
                p.profile.name);
  if (p.own_costs || p.profile.memories.empty()) return {};
  const auto cost = [&](const ir::Graph& graph, const ir::Node& node) {
    return profile::node_cost_parts(p.profile, graph, node);
  };
  PLIMSOLL_TRY(
      planned.summary.placement,
      plan::place_in_memories(
          planned.plan, p.profile, cost,
          {.choice = how.placement.value_or(plan::PlacementChoice::kSearch), .seed = how.seed}));
  return {};
}

Result<PlannedGraph> planned(Pipeline& p) {
  PLIMSOLL_TRY(PlannedGraph out, planned_in_one_memory(p));
  PLIMSOLL_RETURN_IF_ERROR(place(p, with_costs(p, p.planning), out));
  if (out.summary.placement) {
    PLIMSOLL_TRY(out.plan, plan::checked(std::move(out.plan)));
  }
  return out;
}

// Of every kernel that has several ways, the one whose scratch was planned.
void name_engines(const ops::KernelTable& kernels, plan::Plan& plan) {
  const bool any = std::any_of(kernels.facts.begin(), kernels.facts.end(),
                               [](const auto& fact) { return !fact.second.engine.empty(); });
  if (!any) return;
  for (const ir::Node& node : plan.graph.nodes) {
    std::string signature = ops::signature(plan.graph, node);
    const auto fact = kernels.facts.find(signature);
    if (fact != kernels.facts.end() && !fact->second.engine.empty())
      plan.engines.emplace(std::move(signature), fact->second.engine);
  }
}

// What a plan says of the machine and of where its times come from.
void sign(const Pipeline& p, PlannedGraph& planned) {
  if (p.own_costs) return;
  planned.plan.environment = runtime::environment_of(p.backend.get(), p.request.threads);
  if (!on_card(p) && p.backend->is_here())
    planned.plan.environment.device = planned_device(p.device);
  for (const profile::OperatorCost& cost : profile::operator_costs(p.model.graph, p.profile)) {
    planned.summary.measured_operators += cost.measured;
    planned.summary.estimated_operators += cost.nodes - cost.measured;
  }
  planned.plan.predicted_seconds = plan::seconds_of(planned.plan, p.profile.copy_tax);
  name_engines(p.kernels, planned.plan);
}

// Weights are chosen before there is a graph whose operators could be timed.
Result<schedule::DeviceProfile> profile_before_measuring(const Pipeline& p) {
  if (p.device == "cpu" || p.device == kMeasured)
    return profile_of_cpu(p.measure ? p.request : ModelRequest{});
  return profile_named(p);
}

// The graph with weights that stay encoded, and what laying pages of their file wants. `whole`
// makes of the graph what will be planned; a training does it before it is differentiated.
Status keep_weights_encoded(Pipeline& p, std::set<std::string> frozen,
                            const std::function<Result<ir::Graph>(ir::Graph)>& whole) {
  EncodedWeightsRequest request;
  request.file = p.request.weights;
  request.which = p.request.encoded_weights;
  request.int8_activations = p.request.int8_activations;
  request.load = p.files.load;
  request.budget = p.planning.budget;
  request.lossy = p.planning.lossy_weights;
  request.lossy_named = p.planning.lossy_weights_named;
  request.trains = p.model.training;
  request.frozen = std::move(frozen);
  request.on_host = !plans_for_card(p);
  request.writes_freely = p.running.measure || p.running.poison;
  request.arena_of = [&](const ir::Graph& graph) -> Result<Bytes> {
    PLIMSOLL_TRY(const ir::Graph all, whole(graph));
    return quick_arena(all, *p.backend, p.planning);
  };
  std::optional<schedule::DeviceProfile> profile;
  request.seconds_of = [&](const ir::Graph& graph) -> Result<std::map<std::string, double>> {
    if (!profile) {
      PLIMSOLL_TRY(profile, profile_before_measuring(p));
    }
    PLIMSOLL_TRY(const ir::Graph all, whole(graph));
    return profile::seconds_by_weight(all, *profile);
  };
  PLIMSOLL_TRY(EncodedWeightsChoice choice,
               choose_encoded_weights(std::move(p.model.graph), request));
  p.model.graph = std::move(choice.graph);
  p.planning.budget = std::move(choice.budget);
  p.begins_with_pages = choice.begins_with_pages;
  p.loading = choice.loading;
  p.advice = std::move(choice.advice);
  p.weights_chosen = true;
  return {};
}

Result<ir::Graph> differentiated(const ir::Graph& forward, const autodiff::TrainingOptions& how) {
  PLIMSOLL_TRY(const ir::Graph graph, autodiff::make_training_graph(forward, how));
  return rewrite::fuse_scatter_add(graph);
}

std::set<std::string> frozen_weights(const ir::Graph& forward,
                                     const autodiff::TrainingOptions& how) {
  std::set<std::string> out;
  for (const ir::Value& value : forward.values)
    if (value.kind == ir::ValueKind::kWeight) out.insert(value.name);
  for (const ValueId id : autodiff::trained_weights(forward, how))
    out.erase(forward.value(id).name);
  return out;
}

// A model brings its own weights; those of a plan file were loaded for it (plan_weights.h).
RunOptions with_weights(Pipeline& p) {
  RunOptions how = p.running;
  how.communicator = p.ranks.communicator;
  how.backend = p.backend;
  if (!p.model.graph.values.empty() || p.model.weights.size() > 0)
    how.on_start = runtime::load_sources(p.model.weights, how.on_start);
  if (!p.files.trace.empty() || !p.files.chrome_trace.empty()) how.trace = &p.trace;
  bind_ranks(p.ranks, how);
  return how;
}

Result<RunReport> run_strategy(Pipeline& p, const RunOptions& how) {
  if (p.paging && p.on_demand) return runtime::run_paged(p.model.graph, *p.paging, how);
  if (p.paging) {
    // The plan's graph, whose state may be in other parts than the model's.
    const ir::Graph graph = p.planned.plan.graph;
    return runtime::run_paged_then_planned(graph, *p.paging, std::move(p.planned.plan), how);
  }
  if (p.on_demand) return runtime::run_on_demand(p.model.graph, how);
  return runtime::run_plan(std::move(p.planned.plan), how);
}

}  // namespace

Status advance(Pipeline& p, Stage last) {
  ir::Graph& graph = p.model.graph;
  const int threads = resolve_threads(p.request.threads);
  const auto due = [&](Stage stage) {
    if (p.done >= stage || stage > last) return false;
    p.done = stage;
    return true;
  };
  if (due(Stage::kLoaded)) {
    PLIMSOLL_RETURN_IF_ERROR(open_backend(p));
    PLIMSOLL_TRY(p.model, load_forward(p.request));
  }
  if (due(Stage::kSimplified)) {
    PLIMSOLL_TRY(graph, rewrite::simplify(graph, {.trains = p.model.training}));
    p.model.training |= has_backward(graph);
  }
  if (due(Stage::kDifferentiated) && p.model.training && !has_backward(graph)) {
    PLIMSOLL_TRY(autodiff::TrainingOptions how, training_options(p.request));
    how.ranks = p.ranks.size();
    how.fixed_order = p.ranks.fixed_order.value_or(!for_card(p));
    if (p.ranks.sync_batch_norm && how.ranks > 1) {
      PLIMSOLL_TRY(graph, rewrite::sync_batch_norm(graph, {how.ranks, false, how.fixed_order}));
    }
    if (!how.freeze.empty() && !p.request.weights.empty())
      PLIMSOLL_RETURN_IF_ERROR(keep_weights_encoded(
          p, frozen_weights(graph, how),
          [&](const ir::Graph& forward) { return differentiated(forward, how); }));
    PLIMSOLL_TRY(graph, differentiated(graph, how));
  }
  if (due(Stage::kPrepared)) {
    PLIMSOLL_RETURN_IF_ERROR(open_backend(p));
    if (!p.weights_chosen)
      PLIMSOLL_RETURN_IF_ERROR(
          keep_weights_encoded(p, {}, [](ir::Graph all) -> Result<ir::Graph> { return all; }));
    PLIMSOLL_TRY(graph, share_among_ranks(p, std::move(graph)));
    PLIMSOLL_TRY(const schedule::DeviceProfile prices, prices_of_layouts(p));
    PLIMSOLL_TRY(graph, fit_to_backend(std::move(graph), *p.backend, &prices));
    PLIMSOLL_TRY(graph, join_buckets(p, std::move(graph)));
    PLIMSOLL_RETURN_IF_ERROR(agree_on_model(p.ranks, p.request.model, ir::to_text(graph)));
    PLIMSOLL_TRY(p.kernels, kernels::kernel_facts(*p.backend, graph));
    PLIMSOLL_TRY(p.profile, profile_of(p, threads));
    if (p.ranks.link) p.profile.link = *p.ranks.link;
  }
  if (due(Stage::kPlanned) && !p.on_demand && p.ranks.rank() == 0) {
    PLIMSOLL_TRY(p.planned, planned(p));
    sign(p, p.planned);
  }
  if (due(Stage::kRun)) {
    if (!p.on_demand) PLIMSOLL_RETURN_IF_ERROR(share_plan(p.ranks, p.planned.plan));
    const RunOptions how = with_weights(p);
    PLIMSOLL_TRY(p.report, run_strategy(p, how));
    PLIMSOLL_RETURN_IF_ERROR(runtime::write_traces(p.trace, p.files));
  }
  return {};
}

Result<LoadedModel> load_model(const ModelRequest& request) {
  Pipeline p;
  p.request = request;
  PLIMSOLL_RETURN_IF_ERROR(advance(p, Stage::kDifferentiated));
  return std::move(p.model);
}

Result<Pipeline> prepare_model(const ModelRequest& request, const std::string& device,
                               const std::function<void(std::size_t, std::size_t)>& on_measuring) {
  Pipeline p;
  p.request = request;
  p.device = device;
  p.on_measuring = on_measuring;
  PLIMSOLL_RETURN_IF_ERROR(advance(p, Stage::kPrepared));
  return p;
}

Result<PlannedGraph> plan_model(Pipeline& prepared, const PlanOptions& options) {
  prepared.planning = options;
  prepared.done = Stage::kPrepared;
  PLIMSOLL_RETURN_IF_ERROR(advance(prepared, Stage::kPlanned));
  return std::move(prepared.planned);
}

Result<PlannedGraph> plan_graph(const ir::Graph& graph, const PlanOptions& options) {
  Pipeline p;
  p.model.graph = graph;
  p.own_costs = true;
  return plan_model(p, options);
}

Result<std::vector<PlannedGraph>> sweep_model(Pipeline& prepared, const PlanOptions& options) {
  if (!prepared.profile.memories.empty())
    return fail(ErrorCode::kUsage,
                "'{}' has several memories: a sweep plans for one; give --budget instead",
                prepared.profile.name);
  PLIMSOLL_RETURN_IF_ERROR(check_techniques(prepared, options));
  std::vector<rewrite::SplitGraph> splits;
  if (options.remedies.split) {
    PLIMSOLL_TRY(splits, split_by_steps(prepared));
    PLIMSOLL_RETURN_IF_ERROR(prepare_parts(prepared, splits));
  }
  PlanOptions how = with_costs(prepared, options);
  how.deadline_seconds /= static_cast<double>(1 + splits.size());
  PLIMSOLL_TRY(std::vector<PlannedGraph> points, curve_of(prepared.model.graph, how));
  const plan::PlanSummary reference = points.front().summary;
  for (const rewrite::SplitGraph& split : splits) {
    PLIMSOLL_TRY(std::vector<PlannedGraph> more, curve_of(split.graph, how));
    for (PlannedGraph& point : more) {
      point.summary.no_recompute = reference.no_recompute;
      point.summary.no_recompute_seconds = reference.no_recompute_seconds;
      point.summary.split_operators = split.operators;
      point.summary.split_parts = split.parts;
      points.push_back(std::move(point));
    }
  }
  return splits.empty() ? std::move(points) : only_the_best(std::move(points));
}

Result<profile::Tuned> tune_model(Pipeline& prepared, int rounds,
                                  const std::function<void(const profile::TuneRound&)>& on_round) {
  const std::uint64_t seed = prepared.request.seed;
  const PlanOptions options = prepared.planning;
  profile::TuneOptions how;
  how.rounds = rounds;
  how.swaps_to_file = !prepared.running.swap_file.empty();
  how.stop = options.stop;
  how.on_round = on_round;
  how.plan = [&](int round) {
    prepared.request.seed = seed + static_cast<std::uint64_t>(round);
    return plan_model(prepared, options);
  };
  how.run = [&](const plan::Plan& plan) -> Result<profile::TimedStep> {
    profile::TimedStep out;
    RunOptions run = with_weights(prepared);
    run.steps = 2;
    run.on_step = {};
    run.on_end = {};
    run.after_step = {};
    run.steps_for = {};
    run.stop = nullptr;
    run.find_nan = false;
    run.trace = nullptr;
    run.step_seconds = &out.by_plan_step;
    PLIMSOLL_TRY(const RunReport report, runtime::run_plan(plan, run));
    out.seconds = report.step_seconds.back();
    return out;
  };
  auto tuned = profile::tune(how, prepared.profile);
  prepared.request.seed = seed;
  return tuned;
}

PlanOptions with_costs(const Pipeline& prepared, PlanOptions options) {
  if (prepared.own_costs) return options;
  options.seed = prepared.request.seed;
  options.kernels = prepared.kernels;
  if (prepared.backend) options.alignment = prepared.backend->device().alignment();
  if (prepared.begins_with_pages) options.alignment = std::max(options.alignment, kFilePage);
  options.set_aside = prepared.loading;
  options.advice = prepared.advice;
  options.copies = options.swaps_to_file ? prepared.profile.disk : prepared.profile.copies;
  options.copy_tax = prepared.profile.copy_tax;
  options.codecs = prepared.profile.codecs;
  options.seconds = [&](const ir::Graph& graph, const ir::Node& node) {
    return profile::node_cost(prepared.profile, graph, node).seconds;
  };
  return options;
}

}  // namespace plimsoll::api
