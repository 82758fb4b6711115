#include "plimsoll/api/testing/same_bits.h"

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

}  // namespace

Result<LeftBehind> run_planned_for(const plan::Plan& plan, int steps, bool poison, int threads) {
  LeftBehind out;
  RunOptions how = collecting(out, steps, threads);
  how.poison = poison;
  PLIMSOLL_TRY(const RunReport report, run_plan(plan, how));
  if (report.peak != plan.arena_bytes()) {
    return fail(ErrorCode::kInternal, "measured {} bytes, planned {}", report.peak, plan.arena_bytes());
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
