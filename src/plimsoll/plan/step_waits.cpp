#include "plimsoll/plan/step_waits.h"

#include <algorithm>

#include "plimsoll/plan/step_order.h"

namespace plimsoll::plan {
namespace {

// When the last step is done, with every stream going as fast as its waits allow.
double makespan(const Plan& plan, std::size_t streams) {
  std::vector<double> free_at(streams, 0), done;
  for (const PlanStep& step : plan.steps) {
    double& at = free_at[step.stream];
    for (const std::uint32_t wait : step.waits) at = std::max(at, done[wait]);
    done.push_back(at += step.seconds);
  }
  return *std::max_element(free_at.begin(), free_at.end());
}

}  // namespace

KnownSteps set_waits(Plan& plan, std::vector<std::vector<std::size_t>> before,
                     std::size_t streams) {
  KnownSteps out;
  out.position.resize(plan.steps.size());
  out.count.assign(streams, 0);
  std::vector<StreamCounts> latest(streams, StreamCounts(streams, 0));  // known behind its last
  const auto learn = [&](StreamCounts& known, const StreamCounts& more) {
    for (std::size_t k = 0; k < streams; ++k) known[k] = std::max(known[k], more[k]);
  };
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    PlanStep& step = plan.steps[s];
    StreamCounts known = latest[step.stream];
    step.waits.clear();
    std::sort(before[s].rbegin(), before[s].rend());
    for (const std::size_t earlier : before[s]) {
      const std::size_t theirs = plan.steps[earlier].stream;
      if (known[theirs] >= out.position[earlier]) continue;
      step.waits.push_back(static_cast<std::uint32_t>(earlier));
      learn(known, out.known[earlier]);
      known[theirs] = std::max(known[theirs], out.position[earlier]);
    }
    std::sort(step.waits.begin(), step.waits.end());
    out.position[s] = ++out.count[step.stream];
    latest[step.stream] = known;
    latest[step.stream][step.stream] = out.position[s];
    out.known.push_back(std::move(known));
  }
  return out;
}

void wait_for_places(Plan& plan) {
  std::size_t streams = 1;
  for (const PlanStep& step : plan.steps)
    streams = std::max<std::size_t>(streams, step.stream + 1U);
  if (streams == 1) return;
  set_waits(plan, order_of_steps(plan, true).before, streams);
  plan.predicted_seconds = makespan(plan, streams);
}

}  // namespace plimsoll::plan
