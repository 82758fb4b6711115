#include "plimsoll/api/run_model.h"

#include "plimsoll/api/file_kind.h"
#include "plimsoll/api/pipeline.h"
#include "plimsoll/api/pipeline_device.h"
#include "plimsoll/api/plan_weights.h"
#include "plimsoll/api/run_device.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/plan/plan_file.h"
#include "plimsoll/plan/plan_set_files.h"

namespace plimsoll::api {
namespace {

constexpr std::string_view kPlannedPaging = "planned";

Status require_this_machine(const plan::Plan& plan, const ModelRequest& request,
                            const kernels::Backend* backend) {
  const Status runs = require_runnable(plan.environment.device);
  if (!runs) return forward(runs, request.model + ": planned for another machine");
  const Status same =
      plan::require_environment(plan, runtime::environment_of(backend, request.threads));
  return same ? same : forward(same, request.model);
}

bool is_plan_file(const ModelRequest& request) {
  return is_read_as_plan(request.model);
}

// The model that --weights names, of a plan whose weights came from one.
std::string named_model(const RunRequest& request) {
  const std::string& weights = request.files.weights;
  return weights.ends_with(".onnx") ? weights : "";
}

// The weights that a plan of a file takes from a model file.
Status load_weights_of_plan(const RunRequest& request, const plan::Plan& plan, Pipeline& p) {
  if (!takes_weights_from_file(plan.graph)) {
    if (named_model(request).empty()) return {};
    return fail(ErrorCode::kUsage, "--weights {}: {} takes no weights from a model file",
                request.files.weights, request.model.model);
  }
  auto weights = load_plan_weights(plan, request.model.model, named_model(request));
  if (weights) {
    p.model.weights = std::move(*weights);
    return {};
  }
  if (!named_model(request).empty()) return forward(weights);
  return require_weights_in(plan.graph, {request.files.weights, request.files.resume},
                            weights.error());
}

bool pages_then_plans(const RunRequest& request) {
  return request.paging.policy == kPlannedPaging;
}

Result<std::optional<runtime::PagingOptions>> paging_of(const RunRequest& request) {
  const PagingRequest& asked = request.paging;
  std::optional<runtime::PagingOptions> out;
  if (asked.policy.empty()) {
    if (!asked.capacity.empty())
      return fail(ErrorCode::kUsage, "--capacity: say how to page with --paging, too");
    return out;
  }
  if (asked.capacity.empty())
    return fail(ErrorCode::kUsage, "--paging {}: say within how much memory with --capacity",
                asked.policy);
  if (!request.planning.budget.empty() || request.sizes || is_plan_file(request.model))
    return fail(ErrorCode::kUsage,
                "--paging {}: runs a model within --capacity; it takes no plan file, --budget or "
                "--sizes",
                asked.policy);
  const PlanRequest& planning = request.planning;
  if (!pages_then_plans(request) && (!planning.techniques.empty() || !planning.lossy.empty() ||
                                     planning.tune > 0 || !planning.swap_file.empty()))
    return fail(ErrorCode::kUsage,
                "--paging {}: has no plan that --techniques, --lossy, --tune or --swap-file could "
                "change; --paging planned has one",
                asked.policy);
  const auto policy = pages_then_plans(request) ? runtime::PagingPolicy::kDemand
                                                : runtime::paging_policy_from(asked.policy);
  if (!policy)
    return fail(ErrorCode::kUsage,
                "--paging '{}': expects demand, prefetch, pre-evict, belady or planned",
                asked.policy);
  out.emplace();
  out->policy = *policy;
  PLIMSOLL_TRY(out->capacity, parse_byte_size(asked.capacity));
  out->prefetch = asked.prefetch;
  out->forget_dead = !asked.keep_dead;
  return out;
}

// Rank 0 writes what all have in common; traces are each rank's own.
void bind_rank(Pipeline& p) {
  const dist::Communicator& comm = *p.ranks.communicator;
  p.running.part = {comm.rank(), comm.size()};
  if (p.request.threads == 0) p.request.threads = threads_of_rank(comm);
  if (comm.rank() > 0) {
    p.files.writes_save = false;
    p.files.outputs.clear();
  }
  if (comm.size() == 1) return;
  for (std::string* path : {&p.files.trace, &p.files.chrome_trace}) {
    if (!path->empty()) *path = name_for_rank(*path, comm.rank());
  }
}

// What several ranks cannot do yet is said before anything is loaded.
Status check_ranks(const RunRequest& request) {
  if (request.ranks.size() == 1) return {};
  const char* refused = request.sizes                    ? "--sizes"
                        : !request.paging.policy.empty() ? "--paging"
                        : request.planning.tune > 0      ? "--tune"
                        : !request.model.inputs.empty()  ? "--inputs"
                        : request.model.train == false   ? "--infer"
                                                         : nullptr;
  if (refused == nullptr) return {};
  return fail(ErrorCode::kUsage, "{}: not with several ranks; they train one model together",
              refused);
}

// Opens the files, so that a bad one is found before planning.
Result<Pipeline> pipeline_for(const RunRequest& request) {
  Pipeline out;
  out.request = request.model;
  if (!is_plan_file(request.model)) out.request.weights = request.files.weights;
  out.device = request.planning.device;
  out.on_measuring = request.on_measuring;
  out.backend = request.backend;
  out.measure = !request.planning.budget.empty() || !request.planning.slowdown.empty() ||
                request.planning.tune > 0;
  out.on_demand = request.executor == "on-demand";
  PLIMSOLL_TRY(out.paging, paging_of(request));
  if (out.paging) {
    out.on_demand = !pages_then_plans(request);
    out.measure = pages_then_plans(request);
  }
  out.files = request.files;
  if (is_plan_file(request.model) && !named_model(request).empty()) out.files.weights.clear();
  if (is_plan_file(request.model) && request.model.encoded_weights != "auto")
    return fail(ErrorCode::kUsage,
                "--encoded-weights: {} says already which stay encoded; plan again to change it",
                request.model.model);
  if (is_plan_file(request.model) && request.model.int8_activations)
    return fail(ErrorCode::kUsage,
                "--int8-activations: {} says already what is rounded; plan again to change it",
                request.model.model);
  out.ranks = request.ranks;
  if (out.ranks.several()) bind_rank(out);
  const bool inputs = !request.model.inputs.empty();
  if (inputs) out.files.data = request.model.inputs;
  out.files.every_example = inputs && !request.steps_given;
  RunOptions& how = out.running;
  how.communicator = out.ranks.communicator;
  how.steps = !inputs || request.steps_given ? request.steps : 1;
  how.find_nan = request.find_nan;
  how.stop = request.stop;
  how.threads = out.request.threads;
  how.seed = request.model.seed;
  how.poison = request.poison;
  how.measure = request.measure;
  how.swap_file = request.planning.swap_file;
  how.on_step = request.on_step;
  PLIMSOLL_RETURN_IF_ERROR(runtime::bind_files(out.files, how));
  return out;
}

// A plan set in one arena, another size every step.
Result<RunReport> run_sizes(const RunRequest& request, Pipeline& p) {
  const SizeGrid& sizes = *request.sizes;
  if (!request.files.data.empty() || !request.model.inputs.empty() || p.on_demand ||
      !request.planning.budget.empty() || !request.planning.slowdown.empty()) {
    return fail(ErrorCode::kUsage, "--sizes: runs on synthetic data, planned, without a budget");
  }
  std::vector<plan::Plan> plans;
  RunOptions how = p.running;
  if (!p.files.trace.empty() || !p.files.chrome_trace.empty()) how.trace = &p.trace;
  PLIMSOLL_TRY(const std::optional<int> card, kernels::parse_cuda(p.device));
  if (card)
    return fail(ErrorCode::kUsage, "--sizes: plan sets run on the CPU, not on {}", p.device);
  if (is_plan_file(request.model)) {
    PLIMSOLL_TRY(plans, plan::read_plans(request.model.model, sizes));
    for (const plan::Plan& plan : plans)
      PLIMSOLL_RETURN_IF_ERROR(require_this_machine(plan, request.model, nullptr));
    PLIMSOLL_RETURN_IF_ERROR(load_weights_of_plan(request, plans.back(), p));
  } else {
    PLIMSOLL_TRY(const PlanOptions planning, plan_options(request.planning));
    PLIMSOLL_TRY(std::vector<PlanSetMember> members,
                 plan_set_for(request.model, request.planning.device, planning, sizes));
    for (PlanSetMember& member : members) plans.push_back(std::move(member.plan));
    // the weights of an .onnx file stay mapped while it runs
    PLIMSOLL_TRY(p.model, load_model(at_sizes(request.model, sizes, sizes.largest())));
  }
  if (!is_plan_file(request.model) || p.model.weights.size() > 0)
    how.on_start = runtime::load_sources(p.model.weights, how.on_start);
  PLIMSOLL_TRY(p.report, runtime::run_plan_set(std::move(plans), how));
  PLIMSOLL_RETURN_IF_ERROR(runtime::write_traces(p.trace, p.files));
  return std::move(p.report);
}

Status require_data(const RunRequest& request, const ir::Graph& graph) {
  if (request.random || !request.model.inputs.empty()) return {};
  return runtime::require_inputs(request.files, graph);
}

// Up to a plan: of the file, tuned, or as planned.
Status plan_for(const RunRequest& request, Pipeline& p) {
  if (is_plan_file(request.model)) {
    PLIMSOLL_TRY(p.planned.plan, read_plan(request.model.model, request.model.sizes));
    p.done = Stage::kPlanned;
    p.on_demand = false;
    PLIMSOLL_RETURN_IF_ERROR(open_backend(p));
    PLIMSOLL_RETURN_IF_ERROR(require_this_machine(p.planned.plan, p.request, p.backend.get()));
    PLIMSOLL_RETURN_IF_ERROR(
        agree_on_model(p.ranks, request.model.model, plan::to_json(p.planned.plan)));
    PLIMSOLL_RETURN_IF_ERROR(load_weights_of_plan(request, p.planned.plan, p));
    return require_data(request, p.planned.plan.graph);
  }
  PLIMSOLL_TRY(p.planning, plan_options(request.planning));
  if (pages_then_plans(request)) p.planning.budget = std::to_string(p.paging->capacity.value);
  p.planning.stop = request.stop;
  PLIMSOLL_RETURN_IF_ERROR(advance(p, Stage::kPrepared));
  if (request.on_prepared) request.on_prepared();
  PLIMSOLL_RETURN_IF_ERROR(require_data(request, p.model.graph));
  if (p.on_demand) return {};
  if (request.planning.tune == 0) return {};
  PLIMSOLL_TRY(profile::Tuned tuned,
               tune_model(p, request.planning.tune, [&](const profile::TuneRound& round) {
                 if (request.on_tuned)
                   request.on_tuned(round.predicted_seconds, round.measured_seconds);
               }));
  p.planned = std::move(tuned.planned);
  p.done = Stage::kPlanned;
  return {};
}

Result<RunReport> run_alone_or_with_others(const RunRequest& request) {
  PLIMSOLL_RETURN_IF_ERROR(check_ranks(request));
  if (request.executor != "planned" && request.executor != "on-demand") {
    return fail(ErrorCode::kUsage, "executor '{}': expects planned or on-demand", request.executor);
  }
  PLIMSOLL_RETURN_IF_ERROR(require_runnable(request.planning.device));
  if (!is_plan_file(request.model) && !named_model(request).empty()) {
    return fail(ErrorCode::kUsage,
                "--weights {}: an .onnx file names the weights of a plan; those of a model come "
                "from a .safetensors, .plim, .gguf, .pt or .npz file; `plimsoll weights {} -o "
                "FILE.safetensors` makes one",
                request.files.weights, request.files.weights);
  }
  PLIMSOLL_TRY(Pipeline p, pipeline_for(request));
  if (request.sizes) return run_sizes(request, p);
  PLIMSOLL_RETURN_IF_ERROR(plan_for(request, p));
  PLIMSOLL_RETURN_IF_ERROR(advance(p, Stage::kRun));
  return std::move(p.report);
}

}  // namespace

std::vector<std::int64_t> sizes_of_step(const SizeGrid& grid, std::size_t step) {
  return grid.at(static_cast<std::int64_t>(step) % grid.members());
}

Result<RunReport> run_model(const RunRequest& request) {
  Result<RunReport> out = run_alone_or_with_others(request);
  if (out) {
    finish_ranks(request.ranks, *out);
  } else {
    fail_ranks(request.ranks, out.error());
  }
  return out;
}

}  // namespace plimsoll::api
