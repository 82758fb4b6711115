// Poisons buffers of a plan as soon as nothing in the step reads or writes them any more, so that a
// kernel that reads memory whose value has died computes NaN.
//
// The last step to touch a buffer poisons it, before others hear that the step is done: whoever
// uses the bytes next waits for all who touched them. Streams may call touched() at once.
#pragma once

#include <atomic>
#include <vector>

#include "plimsoll/runtime/plan_memory.h"

namespace plimsoll::runtime {

class DeadBuffers {
 public:
  explicit DeadBuffers(const plan::Plan& plan);

  // Where steps run one after the other: the buffers that nothing touches after each.
  std::vector<std::vector<BufferId>> last_touched() const;

  void begin_step();
  // Step number `step` of the plan has run.
  void touched(std::size_t step, const plan::Plan& plan, const PlanMemory& memory);

 private:
  std::vector<std::vector<BufferId>> by_step_;  // the buffers it touches that die in the plan
  std::vector<int> uses_;                       // by buffer: steps that touch it
  std::vector<std::atomic<int>> left_;          // of uses_, in this step
};

}  // namespace plimsoll::runtime
