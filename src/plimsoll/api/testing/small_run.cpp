#include "plimsoll/api/testing/small_run.h"

#include "plimsoll/api/pipeline.h"
#include "plimsoll/api/testing/small_sizes.h"

namespace plimsoll::api {

ModelRequest small_request(const std::string& model) {
  ModelRequest out;
  out.model = model;
  out.sizes = small_sizes(model);
  out.sizes.batch = 8;  // so that there are activations to do without
  out.optimizer = "sgd";
  out.threads = 1;
  return out;
}

Result<SmallRun> run_small(const std::string& model, const SmallRunOptions& options) {
  Pipeline p;
  p.request = small_request(model);
  p.request.amp = options.amp;
  if (options.layers > 0) p.request.sizes.layers = options.layers;
  p.backend = options.backend;
  p.measure = false;
  p.on_demand = options.on_demand;
  p.planning.budget = options.budget;
  p.planning.remedies = {.recompute = true, .swap = options.swap, .encode = false};
  p.planning.deterministic = true;
  p.planning.streams = options.streams;
  p.running.steps = options.steps;
  p.running.threads = 1;
  p.running.poison = options.poison;
  p.running.measure = options.measure;
  SmallRun out;
  p.running.on_end = [&](runtime::Executor& executor) -> Status {
    out.left = runtime::left_behind(executor);
    return {};
  };
  PLIMSOLL_RETURN_IF_ERROR(advance(p, Stage::kRun));
  out.report = std::move(p.report);
  return out;
}

}  // namespace plimsoll::api
