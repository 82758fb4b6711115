// The whole way from a MODEL to a report, in one place.
//
//   load ─▶ simplify ─▶ differentiate ─▶ choose layouts ─▶ ask kernels ─▶ schedule ─▶ plan ─▶ check
//   ─▶
//   run
#pragma once

#include <string>

#include "plimsoll/api/load_model.h"
#include "plimsoll/api/planning.h"
#include "plimsoll/api/running.h"
#include "plimsoll/plan/check_plan.h"
#include "plimsoll/plan/plan_file.h"
#include "plimsoll/plan/tag_walk.h"
#include "plimsoll/schedule/device_profile.h"

namespace plimsoll::api {

// A graph ready to be planned on a device: its kernels have said what they need.
struct PreparedModel {
  LoadedModel model;
  ops::KernelTable kernels;
  schedule::DeviceProfile profile;
};

// `device` is `measured` (this machine, timed now, operator by operator), cpu (the shipped profile
// of such a machine), another shipped profile's name, or a profile file.
Result<PreparedModel> prepare_model(
    const ModelRequest& request, const std::string& device,
    const std::function<void(std::size_t done, std::size_t all)>& on_measuring = {});
inline constexpr std::string_view kMeasured = "measured";

// The same for a graph that is there already, without measuring.
Result<PreparedModel> prepare_loaded(LoadedModel model, int threads, const std::string& device);

// The graph with physical layouts chosen for the CPU's kernels, conversions as visible nodes.
Result<ir::Graph> assign_layouts(const ir::Graph& graph, int threads);

// The options with what the profile and the kernels say; `prepared` must outlive them.
PlanOptions with_costs(const PreparedModel& prepared, PlanOptions options);

// Plans what was prepared. Costs come from the profile.
Result<PlannedGraph> plan_model(const PreparedModel& prepared, const ModelRequest& request,
                                PlanOptions options);

// The curve from keep-all to the smallest that works.
Result<std::vector<PlannedGraph>> sweep_model(const PreparedModel& prepared,
                                              const ModelRequest& request, PlanOptions options);

// Seconds one node takes on the profiled device, measured or estimated.
schedule::Cost node_cost(const schedule::DeviceProfile& profile, const ir::Graph& graph,
                         const ir::Node& node);

Result<schedule::DeviceProfile> find_profile(const std::string& device);

}  // namespace plimsoll::api
