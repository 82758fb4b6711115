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
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/api/load_model.h"
#include "plimsoll/api/plan_request.h"
#include "plimsoll/api/ranks.h"
#include "plimsoll/kernels/backend/backend.h"
#include "plimsoll/ops/kernel_facts.h"
#include "plimsoll/plan/fit/plan_options.h"
#include "plimsoll/profile/tune.h"
#include "plimsoll/runtime/paging/pager.h"
#include "plimsoll/runtime/run_files.h"
#include "plimsoll/schedule/device_profile.h"
#include "plimsoll/trace/event.h"

namespace plimsoll::api {

using plan::PlanFailure;
using plan::PlannedGraph;
using plan::PlanOptions;
using runtime::RunOptions;
using runtime::RunReport;

enum class Stage { kNothing, kLoaded, kSimplified, kDifferentiated, kPrepared, kPlanned, kRun };

struct Pipeline {
  // What is asked for.
  ModelRequest request;
  // `measured` (this machine, timed now, operator by operator), cpu (the shipped profile of such a
  // machine), cuda or cuda:N (a card of this machine, timed now), another shipped profile's name,
  // or a profile file.
  std::string device = "cpu";
  // Where kernels come from and steps run; absent: opened when it is needed, as `device` says.
  std::shared_ptr<kernels::Backend> backend;
  Ranks ranks;             // that train together
  bool measure = true;     // a card's operators; else the times of a shipped profile stand in
  PlanOptions planning;    // kernels and costs are filled in from what was prepared
  bool own_costs = false;  // unless they are the caller's
  bool on_demand = false;  // run without a plan, one allocation at a time
  // Run in so much device memory, whatever the tensors take: without a plan, or with one from the
  // second step on.
  std::optional<runtime::PagingOptions> paging;
  RunOptions running;
  runtime::RunFiles files;
  std::function<void(std::size_t done, std::size_t all)> on_measuring;

  // What was made.
  Stage done = Stage::kNothing;
  LoadedModel model;               // its graph: as far as it has come
  bool begins_with_pages = false;  // every buffer, so that pages of a file can be laid there
  ops::KernelTable kernels;
  schedule::DeviceProfile profile;
  PlannedGraph planned;
  trace::Trace trace;  // of the run, where files.trace or files.chrome_trace ask for it
  RunReport report;
};

// Goes on to `last`.
Status advance(Pipeline& pipeline, Stage last);

// Opens the backend that the device names, unless there is one.
Status open_backend(Pipeline& pipeline);

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

// The graph as the backend's kernels want it: rewritten as it says (kernels/backend/backend.h),
// with layouts chosen.
Result<ir::Graph> fit_to_backend(ir::Graph graph, const kernels::Backend& backend);

// The graph with physical layouts chosen for the backend's kernels, conversions as visible nodes;
// or for those of the CPU with so many threads.
Result<ir::Graph> assign_layouts(const ir::Graph& graph, const kernels::Backend& backend);
Result<ir::Graph> assign_layouts(const ir::Graph& graph, int threads);

// The options with what the profile and the kernels say; the pipeline must outlive them.
PlanOptions with_costs(const Pipeline& prepared, PlanOptions options);

}  // namespace plimsoll::api
