
#include <memory>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/cli/plan_dag.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  plimsoll plan --dag graph.json --budget 80%                any weighted DAG, fastest within 80 %\n"
    "  plimsoll plan --dag graph.json --budget 1.5GiB -o plan.json --remedies recompute,swap\n"
    "  plimsoll plan --dag graph.json --sweep --json              the curve: peak against time\n"
    "  plimsoll plan --dag graph.json --strategy sqrt             a classic strategy instead\n"
    "  plimsoll plan --dag graph.json --budget 60% --prove        ask cbc for the optimum (small graphs)";

struct Options {
  api::PlanDagOptions dag;
  std::string deadline = "3s";
  bool json = false;
};

Action bind_plan(CLI::App& command) {
  auto options = std::make_shared<Options>();
  api::PlanDagOptions& dag = options->dag;
  command.add_option("--dag", dag.file, "a weighted DAG as JSON")->required();
  command.add_option("--budget", dag.budget, "bytes the run may use: 1.5GiB, 800MB, or 40% of keeping everything");
  command.add_option("--order", dag.order, "given, natural, list or search (default search)");
  command.add_option("--remedies", dag.remedies, "comma list of inplace, share, recompute, swap, encode, all");
  command.add_flag("--lossy", dag.lossy, "lossy encodings too");
  command.add_option("--strategy", dag.strategy, "none, sqrt, segments:K, blocks or drop-cheap instead of searching");
  command.add_option("--deadline", options->deadline, "how long to search (default 3s)");
  command.add_flag("--deterministic", dag.deterministic, "count work instead of seconds; monotone in the budget");
  command.add_option("--seed", dag.seed, "seed of the search (default 1)");
  command.add_option("--threads", dag.threads, "threads of the search (default 1)")->check(CLI::Range(1, 1024));
  command.add_flag("--prove", dag.prove, "ask cbc for the optimum of a small graph");
  command.add_flag("--sweep", dag.sweep, "the whole curve from keep-all to the smallest that works");
  command.add_option("-o,--output", dag.output, "write the schedule as JSON");
  command.add_flag("--json", options->json, "the summary as one JSON object");
  return [options]() -> Status {
    PLIMSOLL_TRY(options->dag.deadline_seconds, parse_seconds(options->deadline));
    return plan_dag(options->dag, options->json);
  };
}

}  // namespace

Verb plan_verb() {
  return {"plan", "places everything; with --budget chooses what to recompute, swap and encode", kExamples, bind_plan};
}

}  // namespace plimsoll::cli
