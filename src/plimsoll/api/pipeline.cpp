#include "plimsoll/api/pipeline.h"

#include <fmt/ranges.h>

#include "plimsoll/api/measure_operators.h"
#include "plimsoll/api/profile_machine.h"
#include "plimsoll/base/file.h"
#include "plimsoll/kernels/cpu/convolution_layout.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/hoist_reorders.h"
#include "plimsoll/rewrite/layouts.h"

namespace plimsoll::api {

Result<PreparedModel> prepare_model(
    const ModelRequest& request, const std::string& device,
    const std::function<void(std::size_t, std::size_t)>& on_measuring) {
  const bool measures = device == kMeasured;
  // a wrong name is said before the model is loaded
  if (!measures) PLIMSOLL_RETURN_IF_ERROR(find_profile(device));
  PLIMSOLL_TRY(LoadedModel loaded, load_model(request));
  if (!measures) return prepare_loaded(std::move(loaded), request.threads, device);
  PLIMSOLL_TRY(PreparedModel out, prepare_loaded(std::move(loaded), request.threads, "cpu"));
  const int threads = resolve_threads(request.threads);
  PLIMSOLL_TRY(out.profile, profile_machine({.threads = threads, .on_progress = {}}));
  PLIMSOLL_RETURN_IF_ERROR(
      measure_operators(out.model.graph, {threads, on_measuring}, out.profile));
  return out;
}

Result<PreparedModel> prepare_loaded(LoadedModel model, int threads, const std::string& device) {
  PreparedModel out;
  PLIMSOLL_TRY(out.profile, find_profile(device));
  out.model = std::move(model);
  PLIMSOLL_TRY(out.model.graph, assign_layouts(out.model.graph, resolve_threads(threads)));
  PLIMSOLL_TRY(out.kernels, kernels::cpu_kernel_facts(out.model.graph, {resolve_threads(threads)}));
  return out;
}

Result<ir::Graph> assign_layouts(const ir::Graph& graph, int threads) {
  rewrite::LayoutOptions layouts;
  layouts.weights_layout = [=](const ir::Graph& of, const ir::Node& node) {
    return kernels::convolution_weights_layout(of, node, {threads});
  };
  PLIMSOLL_TRY(ir::Graph out, rewrite::choose_layouts(graph, layouts));
  return rewrite::hoist_reorders(std::move(out));
}

PlanOptions with_costs(const PreparedModel& prepared, PlanOptions options) {
  options.kernels = prepared.kernels;
  options.copies = options.swaps_to_file ? prepared.profile.disk : prepared.profile.copies;
  options.codecs = prepared.profile.codecs;
  options.seconds = [&](const ir::Graph& graph, const ir::Node& node) {
    return node_cost(prepared.profile, graph, node).seconds;
  };
  return options;
}

namespace {

double copying_seconds(const plan::Plan& plan) {
  double out = 0;
  for (const plan::PlanStep& step : plan.steps) {
    if (step.kind == plan::StepKind::kCopyOut || step.kind == plan::StepKind::kCopyIn)
      out += step.seconds;
  }
  return out;
}

}  // namespace

Result<PlannedGraph> plan_model(const PreparedModel& prepared, const ModelRequest& request,
                                PlanOptions options) {
  options.seed = request.seed;
  PLIMSOLL_TRY(PlannedGraph planned,
               plan_graph(prepared.model.graph, with_costs(prepared, std::move(options))));
  planned.plan.environment = this_machine(request.threads);
  for (const OperatorCost& cost : operator_costs(prepared.model.graph, prepared.profile)) {
    planned.summary.measured_operators += cost.measured;
    planned.summary.estimated_operators += cost.nodes - cost.measured;
  }
  planned.plan.predicted_seconds += prepared.profile.copy_tax * copying_seconds(planned.plan);
  return planned;
}

Result<std::vector<PlannedGraph>> sweep_model(const PreparedModel& prepared,
                                              const ModelRequest& request, PlanOptions options) {
  options.seed = request.seed;
  return sweep_graph(prepared.model.graph, with_costs(prepared, std::move(options)));
}

schedule::Cost node_cost(const schedule::DeviceProfile& profile, const ir::Graph& graph,
                         const ir::Node& node) {
  const ops::Cost cost = ops::cost_of(graph, node);
  const ValueId typed = node.outputs.front();
  return schedule::cost_of(profile, ops::signature(graph, node),
                           ir::name(graph.value(typed).type.dtype), cost.operations, cost.bytes());
}

Result<schedule::DeviceProfile> find_profile(const std::string& device) {
  if (const schedule::DeviceProfile* shipped = schedule::shipped_profile(device)) return *shipped;
  if (device.ends_with(".json")) {
    PLIMSOLL_TRY(const std::string text, read_file(device));
    auto profile = schedule::read_profile(text);
    if (!profile) return forward(profile, device);
    return profile;
  }
  return fail(ErrorCode::kUsage, "device '{}': expects {} or a profile file ending in .json",
              device, fmt::join(schedule::shipped_profile_names(), ", "));
}

}  // namespace plimsoll::api
