#include "plimsoll/capi/arena.h"

#include <algorithm>

#include "plimsoll/pack/pack.h"

namespace plimsoll::capi {
namespace {

constexpr double kCountedSeconds = 0.05;

}  // namespace

Result<Arena> place(const schedule::Workload& workload, const schedule::Schedule& schedule,
                    std::int64_t alignment) {
  pack::Problem problem;
  const auto add = [&](std::int64_t begin, std::int64_t end, Bytes bytes) {
    problem.buffers.push_back({.lifetime = {begin, end}, .size = bytes, .alignment = alignment});
    return problem.size() - 1;
  };
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  std::vector<std::size_t> buffer_of(schedule.instances.size(), kNone);
  // In order of birth, so that what is taken over has its buffer already.
  std::vector<std::size_t> by_birth(schedule.instances.size());
  for (std::size_t i = 0; i < by_birth.size(); ++i) by_birth[i] = i;
  std::stable_sort(by_birth.begin(), by_birth.end(), [&](std::size_t a, std::size_t b) {
    return schedule.instances[a].lifetime.begin < schedule.instances[b].lifetime.begin;
  });
  for (std::size_t i : by_birth) {
    const schedule::Instance& it = schedule.instances[i];
    if (it.form == schedule::Form::kHost) continue;
    if (it.takes_over.valid()) {
      buffer_of[i] = buffer_of[it.takes_over.index()];
      problem.buffers[buffer_of[i]].lifetime.end = it.lifetime.end.value;
    } else {
      buffer_of[i] = add(it.lifetime.begin.value, it.lifetime.end.value, it.bytes);
    }
  }
  std::vector<std::size_t> scratch_of(schedule.actions.size(), kNone);
  for (std::size_t a = 0; a < schedule.actions.size(); ++a) {
    const schedule::TaskId task = schedule.actions[a].task;
    if (!task.valid() || workload.task(task).scratch.value == 0) continue;
    const auto now = static_cast<std::int64_t>(a);
    scratch_of[a] = add(now, now + 1, workload.task(task).scratch);
  }
  PLIMSOLL_TRY(const pack::Packing packing,
               pack::pack(problem, {.goal = pack::Goal::kMinimize,
                                    .deadline_seconds = kCountedSeconds,
                                    .deterministic = true}));
  Arena arena;
  arena.bytes = packing.height();
  const auto offset = [&](std::size_t buffer) {
    return buffer == kNone ? -1 : packing.offsets[buffer].value;
  };
  for (std::size_t buffer : buffer_of) arena.instances.push_back(offset(buffer));
  for (std::size_t buffer : scratch_of) arena.scratch.push_back(offset(buffer));
  return arena;
}

}  // namespace plimsoll::capi
