#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>

#include <nlohmann/json.hpp>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/api/plan_files.h"
#include "plimsoll/api/plan_set.h"
#include "plimsoll/api/run_files.h"
#include "plimsoll/api/tuning.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/json.h"
#include "plimsoll/cli/model_options.h"
#include "plimsoll/cli/plan_options.h"
#include "plimsoll/cli/search_progress.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kRunExamples =
    "Examples:\n"
    "  plimsoll run alexnet --batch 16 --steps 3                  trains on synthetic data\n"
    "  plimsoll run resnet50 --batch 16 --budget 40% --steps 3    plans within a budget, then runs "
    "it\n"
    "  plimsoll run gpt2 --budget 35% --remedies all --swap-file /scratch --tune 3\n"
    "  plimsoll run plan.json --steps 3                           runs a plan made by `plimsoll "
    "plan -o`\n"
    "  plimsoll run plans.json --batch 17                        the member of `plan --sizes "
    "batch=1..64 -o plans.json`\n"
    "  plimsoll run plans.json --sizes batch=1..8 --steps 16     another batch every step, in one "
    "arena\n"
    "  plimsoll run gpt2 --layers 2 --strategy on-demand --trace run.jsonl\n"
    "  plimsoll run resnet18 --batch 4 --budget 60% --measure     what the run really held, beside "
    "the plan\n"
    "  plimsoll run model.onnx --inputs in.npz --outputs out.npz  inference, arrays by name\n"
    "  plimsoll run alexnet --save w.npz; plimsoll run alexnet --resume w.npz";

struct RunOptions {
  api::ModelRequest request;
  PlanningTexts planning;
  std::string strategy = "planned";
  api::RunFiles files;
  int steps = 3;
  bool poison = false;
  bool measure = false;
  bool random = false;  // made-up inputs although outputs are asked for
  std::string sizes;
  bool json = false;
};

// Sizes come in turn, one a step.
std::int64_t size_of_step(const api::SizeRange& sizes, std::size_t step) {
  return sizes.low + static_cast<std::int64_t>(step) % (sizes.high - sizes.low + 1);
}

// What the forms took (`encodings`) and what the lossy ones lost (`encoding_error`).
void add_encodings(const api::RunReport& report, nlohmann::ordered_json& out) {
  for (const api::FormReport& form : api::by_form(report.encoded)) {
    out["encodings"][form.form] = {
        {"lossless", form.lossless},        {"tensors", form.maps.size()},
        {"plain_bytes", form.plain.value},  {"planned_bytes", form.room.value},
        {"encoded_bytes", form.used.value}, {"overflow_bytes", form.overflow.value}};
    if (form.lossless) continue;
    auto& error = out["encoding_error"][form.form];
    error = {{"max", form.largest_error},
             {"rms", form.rms_error},
             {"relative_rms", form.relative_error},
             {"tensors", form.maps.size()}};
    for (const runtime::EncodedActivation& map : form.maps) {
      error["by_tensor"].push_back(
          {{"name", map.tensor}, {"max", map.largest_error}, {"rms", api::rms_error(map)}});
    }
  }
}

void print_json(const RunOptions& options, const std::optional<api::SizeRange>& sizes,
                const api::RunReport& report) {
  nlohmann::ordered_json out{{"schema", 1},
                             {"losses", report.losses},
                             {"step_seconds", report.step_seconds},
                             {"peak_bytes", report.peak.value},
                             {"measured", report.measured.has_value()}};
  if (report.measured) {
    out["touched_bytes"] = report.measured->touched.value;
    out["outside_bytes"] = report.measured->outside.value;
    out["touched_by"] = report.measured->touched_by();
  } else if (!report.not_measured.empty()) {
    out["not_measured"] = report.not_measured;
  }
  if (report.planned_peak) out["planned_peak_bytes"] = report.planned_peak->value;
  if (report.host.value > 0) out["host_peak_bytes"] = report.host.value;
  if (report.budget.value > 0) {
    out["budget_bytes"] = report.budget.value;
    out["predicted_seconds"] = report.predicted_seconds;
    out["measured_seconds"] = api::typical_seconds(report);
    out["overflow_bytes"] = report.overflow.value;
  }
  for (std::size_t step = 0; sizes && step < report.step_seconds.size(); ++step)
    out["step_sizes"].push_back(size_of_step(*sizes, step));
  if (!report.encoded.empty()) add_encodings(report, out);
  out["device"] = "cpu";
  out["threads"] = report.threads;
  out["strategy"] = options.strategy;
  std::printf("%s\n", json_text(out, 2).c_str());
}

void print_table(const api::RunReport& report) {
  std::printf("peak %s (%s bytes", human(report.peak).c_str(), grouped(report.peak.value).c_str());
  if (report.measured) {
    std::printf(" measured: %s touched in the arena, %s outside it)",
                grouped(report.measured->touched.value).c_str(),
                grouped(report.measured->outside.value).c_str());
  } else {
    std::printf(" taken, not measured%s%s)", report.not_measured.empty() ? "" : ": ",
                report.not_measured.c_str());
  }
  if (report.planned_peak)
    std::printf(", planned %s bytes", grouped(report.planned_peak->value).c_str());
  if (report.budget.value > 0)
    std::printf(", budget %s bytes", grouped(report.budget.value).c_str());
  std::printf("\n");
  for (const api::FormReport& form : api::by_form(report.encoded)) {
    std::printf("%zu maps as %s: %s in %s (%.2f times less; %s planned)", form.maps.size(),
                form.form.c_str(), human(form.plain).c_str(),
                human(form.used + form.overflow).c_str(),
                static_cast<double>(form.plain.value) /
                    static_cast<double>((form.used + form.overflow).value),
                human(form.room).c_str());
    if (!form.lossless)
      std::printf("; lossy: error at most %.3g, rms %.3g, %.2g %% of the values'",
                  form.largest_error, form.rms_error, 100 * form.relative_error);
    std::printf("\n");
  }
  if (report.budget.value == 0) return;
  const double measured = api::typical_seconds(report);
  std::printf("predicted %.1f ms a step, measured %.1f ms (%+.1f %%)\n",
              1e3 * report.predicted_seconds, 1e3 * measured,
              100 * (measured / report.predicted_seconds - 1));
  if (report.overflow.value > 0)
    std::printf("%s of encoded maps did not fit their room and waited in host memory\n",
                human(report.overflow).c_str());
}

// A plan set in one arena, another size every step.
Result<api::RunReport> run_sizes(const RunOptions& options, const api::SizeRange& sizes,
                                 api::RunOptions how) {
  const std::string& model = options.request.model;
  if (!options.files.data.empty() || !options.request.inputs.empty() ||
      options.strategy != "planned" || !options.planning.budget.empty()) {
    return fail(ErrorCode::kUsage, "--sizes: runs on synthetic data, planned, without a budget");
  }
  std::vector<plan::Plan> plans;
  api::LoadedModel loaded;  // the weights of an .onnx file stay mapped while it runs
  if (model.ends_with(".json")) {
    PLIMSOLL_TRY(plans, api::read_plans(model, sizes));
    for (const plan::Plan& plan : plans) {
      const Status same =
          plan::require_environment(plan, api::this_machine(options.request.threads));
      if (!same) return forward(same, model);
    }
  } else {
    PLIMSOLL_TRY(const api::PlanOptions planning, plan_options(options.planning));
    PLIMSOLL_TRY(std::vector<api::PlanSetMember> members,
                 api::plan_set_for(options.request, options.planning.device, planning, sizes));
    for (api::PlanSetMember& member : members) plans.push_back(std::move(member.plan));
    PLIMSOLL_TRY(loaded, api::load_model(api::at_size(options.request, sizes, sizes.high)));
    how.on_start = api::load_sources(loaded, how.on_start);
  }
  return api::run_plan_set(std::move(plans), how);
}

Result<api::RunReport> run(const RunOptions& options, const api::RunOptions& how) {
  if (options.request.model.ends_with(".json")) {
    PLIMSOLL_TRY(plan::Plan plan, api::read_plan(options.request.model, options.request.sizes));
    const Status same = plan::require_environment(plan, api::this_machine(options.request.threads));
    if (!same) return forward(same, options.request.model);
    return api::run_plan(std::move(plan), how);
  }
  PLIMSOLL_TRY(api::PreparedModel prepared,
               api::prepare_model(options.request, options.planning.device, measuring_operators));
  progress_line("");
  if (!options.random && options.request.inputs.empty())
    PLIMSOLL_RETURN_IF_ERROR(api::require_inputs(options.files, prepared.model));
  api::RunOptions with_weights = how;
  with_weights.on_start = api::load_sources(prepared.model, how.on_start);
  if (options.strategy == "on-demand")
    return api::run_on_demand(prepared.model.graph, with_weights);
  PLIMSOLL_TRY(const api::PlanOptions planning, plan_options(options.planning));
  if (options.planning.tune > 0) {
    const auto tell = [&](const api::TuneRound& round) {
      if (!options.json)
        std::printf("tuning  predicted %.1f ms, measured %.1f ms\n", 1e3 * round.predicted_seconds,
                    1e3 * round.measured_seconds);
    };
    PLIMSOLL_TRY(api::Tuned tuned, api::tune_model(prepared, options.request, planning,
                                                   with_weights, options.planning.tune, tell));
    return api::run_plan(std::move(tuned.planned.plan), with_weights);
  }
  PLIMSOLL_TRY(api::PlannedGraph planned, api::plan_model(prepared, options.request, planning));
  return api::run_plan(std::move(planned.plan), with_weights);
}

Status run_verb_action(const RunOptions& options) {
  if (options.strategy != "planned" && options.strategy != "on-demand") {
    return fail(ErrorCode::kUsage, "strategy '{}': expects planned or on-demand", options.strategy);
  }
  std::optional<api::SizeRange> sizes;
  if (!options.sizes.empty()) {
    PLIMSOLL_TRY(sizes, api::parse_sizes(options.sizes));
  }
  api::RunOptions how;
  how.steps = options.request.inputs.empty() ? options.steps : 1;
  how.threads = options.request.threads;
  how.seed = options.request.seed;
  how.poison = options.poison;
  how.measure = options.measure;
  how.swap_file = options.planning.swap_file;
  trace::Trace trace;
  if (!options.files.trace.empty() || !options.files.chrome_trace.empty()) how.trace = &trace;
  api::RunFiles files = options.files;
  if (!options.request.inputs.empty()) files.data = options.request.inputs;
  PLIMSOLL_RETURN_IF_ERROR(api::bind_files(files, how));
  if (!options.json) {
    how.on_step = [steps = how.steps, sizes, follow = isatty(STDERR_FILENO) == 1](
                      int step, std::optional<double> loss, double seconds) {
      if (follow) std::fprintf(stderr, "\r\033[K");
      std::printf("step %d  ", step + 1);
      if (sizes)
        std::printf("%s %lld  ", sizes->option.c_str(),
                    static_cast<long long>(size_of_step(*sizes, static_cast<std::size_t>(step))));
      if (loss) std::printf("loss %.6f  ", *loss);
      std::printf("%.1f ms\n", 1e3 * seconds);
      std::fflush(stdout);
      if (follow && step + 1 < steps)
        std::fprintf(stderr, "%d of %d, %.0f s left", step + 1, steps,
                     std::ceil(seconds * (steps - step - 1)));
    };
  }
  PLIMSOLL_TRY(const api::RunReport report,
               sizes ? run_sizes(options, *sizes, how) : run(options, how));
  if (how.trace != nullptr) PLIMSOLL_RETURN_IF_ERROR(api::write_traces(trace, options.files));
  if (options.json) {
    print_json(options, sizes, report);
  } else {
    print_table(report);
  }
  return {};
}

Action bind_run(Command& command) {
  auto options = std::make_shared<RunOptions>();
  bind_model_options(command, options->request);
  bind_plan_options(command, options->planning);
  command.add_option("--steps", options->steps, "how many (default 3)").between(1, 1 << 30);
  command
      .add_option("--sizes", options->sizes,
                  "another size every step, in one arena and without planning again: batch=1..8")
      .type_name("RANGE");
  command
      .add_option("--strategy", options->strategy,
                  "from a plan (default), or one allocation at a time")
      .type_name("planned|on-demand");
  command
      .add_option("--data", options->files.data,
                  "one synthetic batch for all steps (default), another every step, or an .npz "
                  "with one array per input")
      .type_name("synthetic|fresh|FILE");
  Option inputs = command
                      .add_option("--inputs", options->request.inputs,
                                  "inference on the arrays of an .npz, by input name; one step")
                      .type_name("FILE");
  command
      .add_flag("--random", options->random,
                "inference on made-up inputs; without --outputs that is the default")
      .excludes(inputs);
  command.add_output("--outputs", options->files.outputs, "write the outputs to an .npz, by name");
  command
      .add_option("--weights", options->files.weights,
                  "weights by name from an .npz, which must have them all")
      .type_name("FILE");
  command.add_flag("--allow-missing", options->files.allow_missing,
                   "weights that the file of --weights lacks start from the seed");
  command
      .add_option("--resume", options->files.resume,
                  "weights and optimizer state from an .npz that --save wrote")
      .type_name("FILE");
  command.add_output("--save", options->files.save,
                     "write weights and optimizer state to an .npz at the end");
  command.add_output("--trace", options->files.trace,
                     "write every allocation and operator as JSON lines");
  command.add_output("--chrome-trace", options->files.chrome_trace,
                     "the same for chrome://tracing and Perfetto");
  Option poison = command.add_flag("--poison", options->poison,
                                   "fill memory with NaN when it is freed (for tests)");
  command
      .add_flag("--measure", options->measure,
                "measure the peak: bytes written in the arena, and live bytes outside it since "
                "binding; steps are slower")
      .excludes(poison);
  command.add_flag("--json", options->json, "one JSON object");
  return [options, &command]() {
    const bool fits =
        !options->planning.budget.empty() && !options->request.model.ends_with(".json");
    if (fits && !command.has("--device")) options->planning.device = api::kMeasured;
    return run_verb_action(*options);
  };
}

}  // namespace

Verb run_verb() {
  return {"run", "runs steps of a model or of a plan", kRunExamples, bind_run};
}

}  // namespace plimsoll::cli
