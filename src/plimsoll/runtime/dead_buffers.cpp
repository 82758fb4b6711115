#include "plimsoll/runtime/dead_buffers.h"

#include <algorithm>
#include <cstring>

namespace plimsoll::runtime {

DeadBuffers::DeadBuffers(const plan::Plan& plan)
    : by_step_(plan.steps.size()), uses_(plan.buffers.size()), left_(plan.buffers.size()) {
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const plan::PlanStep& step = plan.steps[s];
    std::vector<plan::Slot> slots = step.inputs;
    slots.insert(slots.end(), step.outputs.begin(), step.outputs.end());
    slots.push_back(step.scratch);
    for (const plan::Slot& slot : slots) {
      // What is there after the last step does not die.
      if (!slot.buffer.valid() || plan.buffer(slot.buffer).lifetime.end.value >=
                                      static_cast<std::int32_t>(plan.steps.size()))
        continue;
      if (std::find(by_step_[s].begin(), by_step_[s].end(), slot.buffer) != by_step_[s].end())
        continue;
      by_step_[s].push_back(slot.buffer);
      ++uses_[slot.buffer.index()];
    }
  }
}

std::vector<std::vector<BufferId>> DeadBuffers::last_touched() const {
  std::vector<std::vector<BufferId>> out(by_step_.size());
  std::vector<bool> seen(uses_.size());
  for (std::size_t s = by_step_.size(); s-- > 0;) {
    for (const BufferId id : by_step_[s]) {
      if (!seen[id.index()]) out[s].push_back(id);
      seen[id.index()] = true;
    }
  }
  return out;
}

void DeadBuffers::begin_step() {
  for (std::size_t b = 0; b < uses_.size(); ++b)
    left_[b].store(uses_[b], std::memory_order_relaxed);
}

void DeadBuffers::touched(std::size_t step, const plan::Plan& plan, const PlanMemory& memory) {
  for (const BufferId id : by_step_[step]) {
    if (left_[id.index()].fetch_sub(1, std::memory_order_acq_rel) > 1) continue;
    const plan::PlanBuffer& buffer = plan.buffer(id);
    std::byte* const arena = memory.arena(buffer.arena);
    if (arena == nullptr) continue;  // in the swap file
    std::memset(arena + buffer.offset.value, 0xff, static_cast<std::size_t>(buffer.bytes.value));
  }
}

}  // namespace plimsoll::runtime
