#include "plimsoll/api/profile_model.h"

#include "plimsoll/api/fit_to_backend.h"
#include "plimsoll/api/pipeline.h"
#include "plimsoll/api/pipeline_device.h"
#include "plimsoll/base/file.h"
#include "plimsoll/base/threads.h"
#include "plimsoll/profile/machine_rates.h"
#include "plimsoll/profile/measure_on_device.h"
#include "plimsoll/profile/measure_operators.h"
#include "plimsoll/profile/profile_machine.h"

namespace plimsoll::api {

namespace {

// What plans choose layouts by (rewrite/layout_prices.h).
Status measure_other_layouts(ir::Graph graph, const ProfileRequest& request, const Pipeline& p,
                             schedule::DeviceProfile& profile) {
  PLIMSOLL_TRY(const std::vector<ir::Graph> others,
               fit_to_other_layouts(std::move(graph), *p.backend));
  profile::MeasureOptions how;
  how.threads = resolve_threads(request.model.threads);
  how.on_progress = request.on_measuring;
  how.backend = p.backend.get();
  how.only_new = true;
  for (const ir::Graph& other : others)
    PLIMSOLL_RETURN_IF_ERROR(profile::measure_operators(other, how, profile));
  return {};
}

}  // namespace

Result<ProfileReport> profile_model(const ProfileRequest& request) {
  profile::ProfileOptions how;
  how.threads = request.model.threads;
  if (!request.folder.empty()) how.folder = request.folder;
  how.on_progress = request.on_progress;
  ProfileReport out;
  Pipeline p;
  p.request = request.model;
  p.device = request.device;
  p.measure = false;
  if (request.device != "cpu") {
    PLIMSOLL_TRY(const std::optional<int> card, kernels::parse_cuda(request.device));
    if (!card)
      return fail(ErrorCode::kUsage, "device '{}': cpu or cuda can be measured", request.device);
  }
  PLIMSOLL_RETURN_IF_ERROR(open_backend(p));
  // What is wrong with the model is said before the machine is measured for seconds.
  ir::Graph unprepared;
  if (!request.model.model.empty()) {
    PLIMSOLL_RETURN_IF_ERROR(advance(p, Stage::kDifferentiated));
    unprepared = p.model.graph;
    PLIMSOLL_RETURN_IF_ERROR(advance(p, Stage::kPrepared));
  }
  if (p.backend->device().computes_on_host()) {
    PLIMSOLL_TRY(out.profile, profile::profile_and_keep(how, profile::rates_folder()));
  } else {
    PLIMSOLL_TRY(out.profile, profile::profile_device(*p.backend, request.on_progress));
  }
  if (!request.model.model.empty()) {
    const ir::Graph& graph = p.model.graph;
    PLIMSOLL_RETURN_IF_ERROR(profile::measure_operators(
        graph, {resolve_threads(request.model.threads), request.on_measuring, p.backend.get()},
        out.profile));
    out.operators = profile::operator_costs(graph, out.profile);
    out.profile.efficiency = profile::efficiencies(graph, out.profile);
    if (request.layouts)
      PLIMSOLL_RETURN_IF_ERROR(
          measure_other_layouts(std::move(unprepared), request, p, out.profile));
  }
  out.json = schedule::to_json(out.profile);
  if (!request.output.empty()) PLIMSOLL_RETURN_IF_ERROR(write_file(request.output, out.json));
  return out;
}

}  // namespace plimsoll::api
