#include "plimsoll/api/testing/same_bits.h"

#include <algorithm>

namespace plimsoll::api {
namespace {

RunOptions collecting(LeftBehind& into, int steps, int threads = 1) {
  RunOptions how;
  how.steps = steps;
  how.threads = threads;
  how.fresh_batches = true;  // what a step left behind must not serve the next
  how.on_end = [&into](runtime::Executor& executor) -> Status {
    into = left_behind(executor);
    return {};
  };
  return how;
}

// A right plan's highest buffer is written: the run reaches at least into it.
Bytes highest_begin(const plan::Plan& plan) {
  Bytes out(-1);
  for (const plan::PlanBuffer& buffer : plan.buffers) {
    if (buffer.arena == 0 && !buffer.lifetime.empty() && buffer.bytes.value > 0)
      out = std::max(out, buffer.offset - Offset(0));
  }
  return out;
}

}  // namespace

Result<LeftBehind> run_planned_for(const plan::Plan& plan, int steps, bool poison, int threads) {
  LeftBehind out;
  RunOptions how = collecting(out, steps, threads);
  how.poison = poison;
  how.measure = !poison;  // what poison writes would count as touched
  PLIMSOLL_TRY(const RunReport report, run_plan(plan, how));
  if (report.measured && (report.measured->touched > plan.device_bytes() ||
                          report.measured->touched <= highest_begin(plan))) {
    return fail(ErrorCode::kInternal, "touched {} bytes, planned {}", report.measured->touched,
                plan.device_bytes());
  }
  return out;
}

Result<LeftBehind> run_on_demand_for(const ir::Graph& graph, int steps) {
  LeftBehind out;
  PLIMSOLL_TRY(const RunReport report, run_on_demand(graph, collecting(out, steps)));
  if (report.peak.value <= 0) return fail(ErrorCode::kInternal, "nothing was measured");
  return out;
}

}  // namespace plimsoll::api
