#include "plimsoll/plan/check_streams.h"

#include <algorithm>
#include <functional>

#include "plimsoll/pack/bounds/antichain.h"

namespace plimsoll::plan {
namespace {

// Every buffer of the device with what is done for certain when its first step begins (`ready`),
// and what must be done before others may have its bytes (`released`).
pack::Problem problem_of_streams(const Plan& plan, const std::vector<BufferUses>& uses_of,
                                 std::size_t streams) {
  const StepClocks clocks = clocks_of(plan);
  pack::Problem problem;
  problem.clocks.streams = static_cast<int>(streams);
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    if (plan.buffers[b].arena != 0) continue;
    problem.buffers.push_back({.size = plan.buffers[b].bytes});
    const BufferUses& uses = uses_of[b];
    for (std::size_t k = 0; k < streams; ++k) {
      std::int64_t ready = uses.source || uses.steps.empty() ? 0 : INT64_MAX;
      std::int64_t released = uses.steps.empty() ? 1 : 0;
      for (const std::int32_t s : uses.steps) {
        const auto at = static_cast<std::size_t>(s);
        ready = std::min<std::int64_t>(ready, clocks.done[at][k]);
        if (plan.steps[at].stream == k)
          released = std::max<std::int64_t>(released, clocks.number[at]);
      }
      problem.clocks.ready.push_back(ready);
      problem.clocks.released.push_back(uses.held_at_end
                                            ? static_cast<std::int64_t>(plan.steps.size()) + 1
                                            : std::max(released, ready));
    }
  }
  return problem;
}

}  // namespace

StepClocks clocks_of(const Plan& plan) {
  StepClocks out;
  std::array<std::int64_t, kFollowedStreams> latest;  // by stream: its last step
  latest.fill(-1);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const PlanStep& step = plan.steps[s];
    std::array<std::int32_t, kFollowedStreams> done{};
    const auto learn = [&](std::size_t from) {
      for (std::size_t k = 0; k < done.size(); ++k) done[k] = std::max(done[k], out.done[from][k]);
      std::int32_t& theirs = done[plan.steps[from].stream];
      theirs = std::max(theirs, out.number[from]);
    };
    if (latest[step.stream] >= 0) learn(static_cast<std::size_t>(latest[step.stream]));
    for (const std::uint32_t wait : step.waits) learn(wait);
    latest[step.stream] = static_cast<std::int64_t>(s);
    out.number.push_back(done[step.stream] + 1);
    out.done.push_back(done);
  }
  return out;
}

// The packer says which buffers those are, and is not believed: each two of them are asked.
Bytes bound_of_streams(const Plan& plan, const std::vector<BufferUses>& uses) {
  std::size_t streams = 1;
  for (const PlanStep& step : plan.steps)
    streams = std::max<std::size_t>(streams, step.stream + 1U);
  if (streams == 1) return Bytes(0);
  const pack::Problem problem = problem_of_streams(plan, uses, streams);
  const auto over_before = [&](std::size_t a, std::size_t b) {
    return std::equal(&problem.clocks.ready[b * streams],
                      &problem.clocks.ready[b * streams] + streams,
                      &problem.clocks.released[a * streams], std::greater_equal<>());
  };
  std::vector<char> is_used;
  for (std::size_t b = 0; b < problem.size(); ++b) is_used.push_back(!over_before(b, b));
  const auto found = pack::heaviest_antichain(problem, is_used);
  if (!found) return Bytes(0);
  Bytes sum;
  for (const BufferId a : found->members) {
    sum += problem.buffers[a.index()].size;
    for (const BufferId b : found->members) {
      if (over_before(a.index(), b.index())) return Bytes(0);
    }
  }
  return sum;
}

}  // namespace plimsoll::plan
