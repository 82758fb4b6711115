// What a pipeline (pipeline.h) was asked for, and what it has made so far.
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
  // machine, at this one's rates where request.machine_rates knows them), cuda or cuda:N (a card of
  // this machine, timed now), another shipped profile's name, or a profile file.
  std::string device = "cpu";
  // Where kernels come from and steps run; absent: opened when it is needed, as `device` says.
  std::shared_ptr<kernels::Backend> backend;
  Ranks ranks;             // that train together
  bool measure = true;     // what the device takes; else the times of a shipped profile stand in
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
  bool weights_chosen = false;     // that stay encoded
  Bytes loading;       // what loading weights takes beside the arena (encoded_weights.h)
  std::string advice;  // what of weights may help a budget that is too small (likewise)
  ops::KernelTable kernels;
  schedule::DeviceProfile profile;
  PlannedGraph planned;
  trace::Trace trace;  // of the run, where files.trace or files.chrome_trace ask for it
  RunReport report;
};

}  // namespace plimsoll::api
