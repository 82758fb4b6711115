#include "plimsoll/plan/check_stream_bound.h"

#include <algorithm>
#include <map>

#include "plimsoll/pack/bounds/antichain.h"

namespace plimsoll::plan {
namespace {

Bytes most_at_once(const std::map<std::int64_t, std::int64_t>& changes) {
  std::int64_t live = 0, most = 0;
  for (const auto& [when, bytes] : changes) most = std::max(most, live += bytes);
  return Bytes(most);
}

// Every buffer of the device with what is done for certain when its first step begins (`ready`),
// and what must be done before others may have its bytes (`released`).
pack::Problem problem_of_streams(const Plan& plan, const std::vector<BufferUses>& uses_of,
                                 std::size_t streams) {
  std::vector<std::int64_t> position;            // by step: its number on its own stream, from 1
  std::vector<std::vector<std::int64_t>> known;  // by step and stream: how many are done before
  std::vector<std::int64_t> count(streams, 0);
  std::vector<std::int64_t> latest(streams, -1);  // by stream: its last step
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const PlanStep& step = plan.steps[s];
    std::vector<std::int64_t> done(streams, 0);
    const auto learn = [&](std::size_t from) {
      for (std::size_t k = 0; k < streams; ++k) done[k] = std::max(done[k], known[from][k]);
      std::int64_t& theirs = done[plan.steps[from].stream];
      theirs = std::max(theirs, position[from]);
    };
    if (latest[step.stream] >= 0) learn(static_cast<std::size_t>(latest[step.stream]));
    for (const std::uint32_t wait : step.waits) learn(wait);
    latest[step.stream] = static_cast<std::int64_t>(s);
    position.push_back(++count[step.stream]);
    known.push_back(std::move(done));
  }
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
        if (!uses.source) ready = std::min(ready, known[at][k]);
        if (plan.steps[at].stream == k) released = std::max(released, position[at]);
      }
      problem.clocks.ready.push_back(ready);
      problem.clocks.released.push_back(uses.held_at_end
                                            ? static_cast<std::int64_t>(plan.steps.size()) + 1
                                            : std::max(released, ready));
    }
  }
  return problem;
}

// The packer says which buffers those are, and is not believed: each two of them are asked.
Bytes heaviest_together(const pack::Problem& problem) {
  const auto streams = static_cast<std::size_t>(problem.clocks.streams);
  const auto over_before = [&](std::size_t a, std::size_t b) {
    for (std::size_t k = 0; k < streams; ++k) {
      if (problem.clocks.ready[b * streams + k] < problem.clocks.released[a * streams + k])
        return false;
    }
    return true;
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

}  // namespace

Bytes bound_of_streams(const Plan& plan, const std::vector<BufferUses>& uses) {
  std::size_t streams = 1;
  for (const PlanStep& step : plan.steps)
    streams = std::max<std::size_t>(streams, step.stream + 1U);
  if (streams == 1) return Bytes(0);
  const pack::Problem problem = problem_of_streams(plan, uses, streams);
  const pack::Clocks& clocks = problem.clocks;
  Bytes most;
  // Buffers that are in use together on any one stream are in use together.
  for (std::size_t k = 0; k < streams; ++k) {
    std::map<std::int64_t, std::int64_t> changes;
    for (std::size_t b = 0; b < problem.size(); ++b) {
      const std::int64_t ready = clocks.ready[b * streams + k];
      const std::int64_t released = clocks.released[b * streams + k];
      if (ready >= released) continue;
      changes[ready] += problem.buffers[b].size.value;
      changes[released] -= problem.buffers[b].size.value;
    }
    most = std::max(most, most_at_once(changes));
  }
  return std::max(most, heaviest_together(problem));
}

}  // namespace plimsoll::plan
