#include <memory>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/comma_list.h"
#include "plimsoll/cli/model_options.h"
#include "plimsoll/cli/plan_dag.h"
#include "plimsoll/cli/plan_model.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kPlanExamples =
    "Examples:\n"
    "  plimsoll plan resnet50 --batch 32                          the table: none, in place, "
    "sharing, packed\n"
    "  plimsoll plan resnet50 --batch 32 --budget 1.5GiB          the fastest step within 1.5 GiB\n"
    "  plimsoll plan gpt2 --budget 40% --remedies recompute,swap -o plan.json\n"
    "  plimsoll plan gpt2 --batch 8 --sweep -o sweep.json         the curve: peak against time\n"
    "  plimsoll plan gpt2 --budget 8GiB --max-batch               the largest batch that fits\n"
    "  plimsoll plan resnet --depth 1000 --batch 32 --figure --deadline 60s -o figure.svg\n"
    "  plimsoll plan exp-example --explain                        the tag walk, step by step\n"
    "  plimsoll plan --dag graph.json --budget 80%                any weighted DAG, fastest within "
    "80 %\n"
    "  plimsoll plan --dag graph.json --sweep --json              the curve: peak against time\n"
    "  plimsoll plan --dag graph.json --strategy sqrt             a classic strategy instead\n"
    "  plimsoll plan --dag graph.json --budget 60% --prove        ask cbc for the optimum (small "
    "graphs)";

struct PlanOptions {
  PlanModelOptions model;
  api::PlanDagOptions dag;
};

// What a DAG shares with a model, in its own words.
Status copy_shared(PlanOptions& options, const Command& command) {
  const PlanningTexts& texts = options.model.planning;
  api::PlanDagOptions& dag = options.dag;
  dag.budget = texts.budget;
  dag.lossy = !texts.lossy.empty();
  if (dag.lossy && texts.lossy != kBareLossy) {
    for (const std::string_view form : comma_list(texts.lossy)) dag.lossy_forms.emplace_back(form);
  }
  dag.deterministic = texts.deterministic;
  dag.output = options.model.output;
  dag.seed = options.model.request.seed;
  if (command.has("--order")) dag.order = texts.order;
  if (command.has("--remedies")) dag.remedies = texts.remedies;
  if (options.model.request.threads > 0) dag.threads = options.model.request.threads;
  PLIMSOLL_TRY(dag.deadline_seconds, parse_seconds(texts.deadline));
  return {};
}

Action bind_plan(Command& command) {
  auto options = std::make_shared<PlanOptions>();
  Option model = bind_model_options(command, options->model.request).required(false);
  bind_plan_options(command, options->model.planning);
  command.add_option("--dag", options->dag.file, "a weighted DAG as JSON instead of a model")
      .type_name("FILE")
      .excludes(model);
  command.add_option("--strategy", options->dag.strategy, "a classic one instead of searching")
      .type_name("none|sqrt|segments:K|blocks|drop-cheap");
  command.add_flag("--prove", options->dag.prove,
                   "for a DAG: ask cbc for the optimum of a small graph");
  command.add_flag("--sweep", options->dag.sweep,
                   "the whole curve from keep-all to the smallest that works");
  command.add_flag("--max-batch", options->model.max_batch,
                   "the largest batch for which a plan within --budget is found");
  command.add_flag(
      "--figure", options->model.figure,
      "the classic figure: none, in place, sharing, drop-cheap, sqrt, auto; -o writes it as SVG");
  command
      .add_option("--slower", options->model.slower_percent,
                  "how much slower the figure's own plan may be, in percent")
      .type_name("PERCENT")
      .between(0.0, 10000.0)
      .show_default();
  command.add_flag("--explain", options->model.explain,
                   "print the tag walk, the simple planner, step by step");
  command
      .add_option(
          "--sizes", options->model.sizes,
          "a plan set: one plan for every size, at the same offsets (batch=1..64 or seq=1..128)")
      .type_name("RANGE");
  command.add_output(
      "-o,--output", options->model.output,
      "write the plan (for a DAG: the schedule; with --sweep: the curve, for `view`) as JSON");
  command.add_flag("--json", options->model.json, "the summary as one JSON object");
  return [options, &command]() -> Status {
    if (options->dag.file.empty()) {
      if (options->model.request.model.empty())
        return fail(ErrorCode::kUsage, "plan: name a MODEL or give --dag FILE");
      options->model.sweep = options->dag.sweep;
      options->model.strategy = options->dag.strategy;
      return plan_model(options->model);
    }
    PLIMSOLL_RETURN_IF_ERROR(copy_shared(*options, command));
    return plan_dag(options->dag, options->model.json);
  };
}

}  // namespace

Verb plan_verb() {
  return {"plan", "places everything; with --budget chooses what to recompute, swap and encode",
          kPlanExamples, bind_plan};
}

}  // namespace plimsoll::cli
