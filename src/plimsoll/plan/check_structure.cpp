#include "plimsoll/plan/check_structure.h"

#include <bit>

#include "plimsoll/ops/registry.h"

namespace plimsoll::plan {
namespace {

bool exists(const Plan& plan, BufferId id) {
  return id.index() < plan.buffers.size();
}

void check_buffer(const Plan& plan, std::size_t b, Problems& problems) {
  const PlanBuffer& buffer = plan.buffers[b];
  const std::int64_t at = buffer.offset.value;
  if (buffer.arena >= plan.arenas.size() || buffer.bytes.value < 0 || at < 0 ||
      at > plan.arenas[buffer.arena].bytes.value - buffer.bytes.value) {
    problems.add("buffer {} '{}': [{}, +{}) is outside its arena", b, buffer.name, at,
                 buffer.bytes);
  } else if (at % plan.alignment.value != 0) {
    problems.add("buffer {} '{}': offset {} is not aligned to {}", b, buffer.name, at,
                 plan.alignment);
  }
}

// Members follow each other with no more than the alignment's padding in between.
void check_group(const Plan& plan, const std::vector<BufferId>& group, Problems& problems) {
  const PlanBuffer* before = nullptr;
  for (const BufferId id : group) {
    if (!exists(plan, id))
      return problems.add("a contiguous group names a buffer that does not exist");
    const PlanBuffer& buffer = plan.buffer(id);
    const std::int64_t gap =
        before == nullptr ? 0 : buffer.offset.value - before->offset.value - before->bytes.value;
    if (before != nullptr &&
        (before->arena != buffer.arena || gap < 0 || gap >= plan.alignment.value))
      problems.add("'{}' does not lie right behind '{}'", buffer.name, before->name);
    before = &buffer;
  }
}

void check_places(const Plan& plan, const std::vector<ValueSlot>& places, std::string_view what,
                  Problems& problems) {
  for (const ValueSlot& place : places) {
    if (place.value.index() >= plan.graph.values.size() || !exists(plan, place.slot.buffer))
      problems.add("a {} names a value or buffer that does not exist", what);
  }
}

void check_step(const Plan& plan, std::size_t s, Problems& problems) {
  const PlanStep& step = plan.steps[s];
  if (step.stream >= kFollowedStreams)
    problems.add("step {}: stream {} is above {}", s, step.stream, kFollowedStreams - 1);
  if (is_compute(step)) {
    if (step.node.index() >= plan.graph.nodes.size())
      return problems.add("step {}: no such node", s);
    const ir::Node& node = plan.graph.node(step.node);
    if (step.inputs.size() != node.inputs.size() || step.outputs.size() != node.outputs.size())
      return problems.add("step {} ({}): has {} inputs and {} outputs, the node {} and {}", s,
                          node.op, step.inputs.size(), step.outputs.size(), node.inputs.size(),
                          node.outputs.size());
  } else if (step.value.index() >= plan.graph.values.size() || step.inputs.empty() ||
             (step.kind != StepKind::kDrop && step.outputs.size() != 1)) {
    return problems.add("step {}: a {} without a value, a source or a destination", s,
                        name(step.kind));
  }
  for (const auto* slots : {&step.inputs, &step.outputs}) {
    for (const Slot& slot : *slots) {
      if (slot.buffer.valid() && !exists(plan, slot.buffer))
        problems.add("step {}: no such buffer", s);
    }
  }
  if (step.scratch.buffer.valid() && !exists(plan, step.scratch.buffer))
    problems.add("step {}: no such scratch", s);
  for (const std::uint32_t wait : step.waits) {
    if (wait >= s)
      problems.add("step {}: waits for step {}, which does not come before it", s, wait);
  }
}

}  // namespace

void check_structure(const Plan& plan, Problems& problems) {
  if (const Status status = ops::verify(plan.graph); !status)
    return problems.add("the graph is wrong: {}", status.error().message);
  if (plan.arenas.empty()) problems.add("there is no arena");
  const std::int64_t alignment = plan.alignment.value;
  if (alignment < kLeastAlignment || alignment > kMostAlignment ||
      !std::has_single_bit(static_cast<std::uint64_t>(alignment)))
    return problems.add("the alignment is {}: a power of two from {} to {} is expected", alignment,
                        kLeastAlignment, kMostAlignment);
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) check_buffer(plan, b, problems);
  for (const std::vector<BufferId>& group : plan.contiguous) check_group(plan, group, problems);
  check_places(plan, plan.sources, "source", problems);
  check_places(plan, plan.results, "result", problems);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) check_step(plan, s, problems);
  if (plan.budget.value > 0 && plan.arena_bytes() > plan.budget)
    problems.add("the arena has {} bytes, the budget is {}", plan.arena_bytes(), plan.budget);
}

}  // namespace plimsoll::plan
