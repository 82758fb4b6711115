#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "plimsoll/cli/model_options.h"
#include "plimsoll/cli/plan_dag.h"
#include "plimsoll/cli/plan_model.h"
#include "plimsoll/cli/plan_options.h"
#include "plimsoll/cli/rank_options.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kPlanExamples =
    "Examples:\n"
    "  plimsoll plan resnet50 --batch 32                          the table: none, in place, "
    "sharing, packed\n"
    "  plimsoll plan resnet50 --batch 32 --budget 1.5GiB          the fastest step within 1.5 GiB\n"
    "  plimsoll plan gpt2 --budget 40% --techniques recompute,swap -o plan.json\n"
    "  plimsoll plan gpt2 --batch 8 --sweep -o sweep.json         the curve: peak against time\n"
    "  plimsoll plan gpt2 --budget 8GiB --max-batch               the largest batch that fits\n"
    "  plimsoll plan resnet --depth 1000 --batch 32 --figure --deadline 60s -o figure.svg\n"
    "  plimsoll plan gpt2 --ranks 8 --link 400Gb/s                what ranks send, and what of it "
    "is hidden\n"
    "  plimsoll plan exp-example --explain                        the simple planner, step by "
    "step\n"
    "  plimsoll plan --dag graph.json --budget 80%                any weighted DAG, fastest within "
    "80 %\n"
    "  plimsoll plan --dag graph.json --sweep --json              the curve: peak against time\n"
    "  plimsoll plan --dag graph.json --checkpointing sqrt             classic checkpointing "
    "instead\n"
    "  plimsoll plan --dag graph.json --budget 60% --prove        ask cbc for the optimum (small "
    "graphs)";

struct PlanOptions {
  PlanModelOptions model;
  api::PlanDagRequest dag;
};

// What a DAG shares with a model, and what is another default for it.
void copy_shared(PlanOptions& options, const Command& command) {
  const api::PlanJob& job = options.model.job;
  options.dag.planning = job.planning;
  if (!command.has("--order")) options.dag.planning.order = "search";
  options.dag.output = job.output;
  options.dag.seed = job.model.seed;
  options.dag.threads = job.model.threads;
}

// A graph has no layers, no batch and no gradients; its nodes have their own times.
Status refuse_options_of_models(const api::PlanDagRequest& dag, const Command& command) {
  static constexpr std::array<std::string_view, 16> kOfGraphs = {
      "--dag",      "--budget",        "--slowdown",      "--techniques", "--lossy", "--order",
      "--deadline", "--deterministic", "--checkpointing", "--prove",      "--sweep", "--seed",
      "--threads",  "--output",        "--json",          "--log-level"};
  for (const std::string& option : command.given()) {
    if (std::find(kOfGraphs.begin(), kOfGraphs.end(), option) == kOfGraphs.end())
      return fail(ErrorCode::kUsage,
                  "{} is for a model, and --dag {} is a graph of its own sizes "
                  "and times",
                  option, dag.file);
  }
  if (dag.sweep && command.has("--budget"))
    return fail(ErrorCode::kUsage, "--sweep plans for all budgets; leave out --budget or --sweep");
  return {};
}

Action bind_plan(Command& command) {
  auto options = std::make_shared<PlanOptions>();
  Option model = bind_model_options(command, options->model.job.model).required(false);
  bind_plan_options(command, options->model.job.planning, options->model.job.model);
  bind_tf32(command, options->model.job.model);
  bind_encoded_weights(command, options->model.job.model);
  command
      .add_option("--weights", options->model.job.model.weights,
                  "the file of weights that it will run on: what it has encoded may stay so")
      .type_name("FILE");
  bind_rank_options(command, options->model.job.ranks,
                    "plan one of so many ranks that train together, on paper: what each holds, "
                    "and what they send");
  bind_link(command, options->model.job.ranks);
  command
      .add_input("--dag", options->dag.file,
                 "a weighted DAG as JSON, ours or networkx' node-link form, instead of a model; - "
                 "is standard input")
      .type_name("FILE")
      .excludes(model);
  command
      .add_option("--checkpointing,--strategy", options->dag.checkpointing,
                  "a classic checkpointing strategy instead of a search")
      .type_name("none|sqrt|segments:K|blocks|drop-cheap");
  command.add_flag("--prove", options->dag.prove,
                   "for a DAG: ask cbc for the optimum of a small graph, and say what it proved");
  command.add_flag("--sweep", options->dag.sweep,
                   "the whole curve, from the no-recompute plan to the smallest that works");
  command.add_flag("--max-batch", options->model.max_batch,
                   "the largest batch for which a plan within --budget is found (default "
                   "--deadline 6s)");
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
                   "print what the simple planner does, step by step");
  command
      .add_option(
          "--sizes", options->model.sizes,
          "a plan set: one plan for every size, at the same offsets (batch=1..64, seq=1..128 or "
          "batch=1..8,seq=16..64)")
      .type_name("RANGE");
  command.add_output(
      "-o,--output", options->model.job.output,
      "write the plan (for a DAG: the schedule; with --sweep: the curve, for `view`) as JSON");
  command.add_flag("--json", options->model.json, "the summary as one JSON object");
  return [options, &command]() -> Status {
    if (options->dag.file.empty()) {
      if (options->model.job.model.model.empty())
        return fail(ErrorCode::kUsage, "plan: name a MODEL or give --dag FILE");
      if (options->dag.prove)
        return fail(ErrorCode::kUsage, "--prove is for a graph of --dag, and {} is a model",
                    options->model.job.model.model);
      options->model.sweep = options->dag.sweep;
      options->model.job.checkpointing = options->dag.checkpointing;
      if (options->model.max_batch && !command.has("--deadline"))
        options->model.job.planning.deadline = "6s";
      return plan_model(options->model, command);
    }
    PLIMSOLL_RETURN_IF_ERROR(refuse_options_of_models(options->dag, command));
    copy_shared(*options, command);
    return plan_dag(options->dag, options->model.json, command);
  };
}

}  // namespace

Verb plan_verb() {
  return {"plan", "places everything; with --budget chooses what to recompute, swap and encode",
          kPlanExamples, bind_plan};
}

}  // namespace plimsoll::cli
