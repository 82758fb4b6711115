#include "plimsoll/api/profile_model.h"

#include "plimsoll/api/pipeline.h"
#include "plimsoll/base/file.h"
#include "plimsoll/base/threads.h"
#include "plimsoll/profile/measure_operators.h"
#include "plimsoll/profile/profile_machine.h"

namespace plimsoll::api {

Result<ProfileReport> profile_model(const ProfileRequest& request) {
  profile::ProfileOptions how;
  how.threads = request.model.threads;
  if (!request.folder.empty()) how.folder = request.folder;
  how.on_progress = request.on_progress;
  ProfileReport out;
  PLIMSOLL_TRY(out.profile, profile::profile_machine(how));
  if (!request.model.model.empty()) {
    PLIMSOLL_TRY(const Pipeline prepared, prepare_model(request.model, "cpu"));
    const ir::Graph& graph = prepared.model.graph;
    PLIMSOLL_RETURN_IF_ERROR(profile::measure_operators(
        graph, {resolve_threads(request.model.threads), request.on_measuring}, out.profile));
    out.operators = profile::operator_costs(graph, out.profile);
  }
  out.json = schedule::to_json(out.profile);
  if (!request.output.empty()) PLIMSOLL_RETURN_IF_ERROR(write_file(request.output, out.json));
  return out;
}

}  // namespace plimsoll::api
