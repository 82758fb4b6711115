// The whole way from a MODEL to what its run measured: one function, every arrow in it.
//
//   load ─▶ simplify ─▶ differentiate ─▶ assign layouts ─▶ workload ─▶ schedule ⇄ plan ─▶ check
//        ─▶ run ─▶ trace
//
// A verb says what it wants, asks for the stage that it needs and reads what was made:
//
//   graph, memory                       kDifferentiated    the graph
//   profile                             kPrepared          the graph that is planned, and its costs
//   plan, check, view, diff, explain    kPlanned           a plan that has passed the verifier
//   run                                 kRun               losses, seconds, bytes; traces in files
//
// A pipeline goes on from where it stopped, so that a stage can be done again with other options
// (set `done` back), and it may begin late: `run plan.json` begins at kPlanned with the plan of the
// file.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plimsoll/api/fit_to_backend.h"
#include "plimsoll/api/pipeline_state.h"
#include "plimsoll/profile/tune.h"

namespace plimsoll::api {

// Goes on to `last`.
Status advance(Pipeline& pipeline, Stage last);

// Shorter ways to say it. The graph of a training step, or the forward graph:
Result<LoadedModel> load_model(const ModelRequest& request);
// A graph ready to be planned on a device: its kernels have said what they need.
Result<Pipeline> prepare_model(
    const ModelRequest& request, const std::string& device,
    const std::function<void(std::size_t done, std::size_t all)>& on_measuring = {});
// Plans what was prepared, again with these options.
Result<PlannedGraph> plan_model(Pipeline& prepared, const PlanOptions& options);
// Plans a graph with the costs that the options bring.
Result<PlannedGraph> plan_graph(const ir::Graph& graph, const PlanOptions& options);
// The curve from keeping everything to the smallest that works.
Result<std::vector<PlannedGraph>> sweep_model(Pipeline& prepared, const PlanOptions& options);
// Plans `rounds` times, each from another seed, runs each plan as pipeline.running says and keeps
// the fastest (profile/tune.h). What was learned is in the pipeline's profile.
Result<profile::Tuned> tune_model(
    Pipeline& prepared, int rounds,
    const std::function<void(const profile::TuneRound&)>& on_round = {});

// The options with what the profile and the kernels say; the pipeline must outlive them.
PlanOptions with_costs(const Pipeline& prepared, PlanOptions options);

}  // namespace plimsoll::api
