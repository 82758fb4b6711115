#include "plimsoll/plan/check_structure.h"

#include "plimsoll/ops/registry.h"

namespace plimsoll::plan {
namespace {

class StructureChecker {
 public:
  explicit StructureChecker(const Plan& plan) : plan_(plan) {}

  std::vector<std::string> run() {
    check_all();
    return std::move(problems_);
  }

 private:
  template <typename... Args>
  void complain(fmt::format_string<Args...> format, Args&&... args) {
    if (problems_.size() < kMostProblems)
      problems_.push_back(fmt::format(format, std::forward<Args>(args)...));
  }
  bool exists(const Slot& slot) const { return slot.buffer.index() < plan_.buffers.size(); }

  void check_all() {
    if (const Status status = ops::verify(plan_.graph); !status)
      return complain("the graph is wrong: {}", status.error().message);
    if (plan_.arenas.empty()) complain("there is no arena");
    for (std::size_t b = 0; b < plan_.buffers.size(); ++b) {
      const PlanBuffer& buffer = plan_.buffers[b];
      const std::int64_t at = buffer.offset.value;
      if (buffer.arena >= plan_.arenas.size() || buffer.bytes.value < 0 || at < 0 ||
          at > plan_.arenas[buffer.arena].bytes.value - buffer.bytes.value) {
        complain("buffer {} '{}': [{}, +{}) is outside its arena", b, buffer.name, at,
                 buffer.bytes);
      } else if (at % kAlignment != 0) {
        complain("buffer {} '{}': offset {} is not aligned to {}", b, buffer.name, at, kAlignment);
      }
    }
    for (const std::vector<BufferId>& group : plan_.contiguous) check_group(group);
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) check_step(s);
    if (plan_.budget.value > 0 && plan_.arena_bytes() > plan_.budget)
      complain("the arena has {} bytes, the budget is {}", plan_.arena_bytes(), plan_.budget);
  }

  // Members follow each other with no more than the alignment's padding in between.
  void check_group(const std::vector<BufferId>& group) {
    const PlanBuffer* before = nullptr;
    for (const BufferId id : group) {
      if (id.index() >= plan_.buffers.size())
        return complain("a contiguous group names a buffer that does not exist");
      const PlanBuffer& buffer = plan_.buffer(id);
      const std::int64_t gap =
          before == nullptr ? 0 : buffer.offset.value - before->offset.value - before->bytes.value;
      if (before != nullptr && (before->arena != buffer.arena || gap < 0 || gap >= kAlignment))
        complain("'{}' does not lie right behind '{}'", buffer.name, before->name);
      before = &buffer;
    }
  }

  void check_step(std::size_t s) {
    const PlanStep& step = plan_.steps[s];
    if (step.stream >= kFollowedStreams)
      complain("step {}: stream {} is above {}", s, step.stream, kFollowedStreams - 1);
    if (step.kind == StepKind::kCompute || step.kind == StepKind::kRecompute) {
      if (step.node.index() >= plan_.graph.nodes.size())
        return complain("step {}: no such node", s);
      const ir::Node& node = plan_.graph.node(step.node);
      if (step.inputs.size() != node.inputs.size() || step.outputs.size() != node.outputs.size())
        return complain("step {} ({}): has {} inputs and {} outputs, the node {} and {}", s,
                        node.op, step.inputs.size(), step.outputs.size(), node.inputs.size(),
                        node.outputs.size());
    } else if (step.value.index() >= plan_.graph.values.size() || step.inputs.empty() ||
               (step.kind != StepKind::kDrop && step.outputs.size() != 1)) {
      return complain("step {}: a {} without a value, a source or a destination", s,
                      name(step.kind));
    }
    for (const auto* slots : {&step.inputs, &step.outputs}) {
      for (const Slot& slot : *slots) {
        if (slot.buffer.valid() && !exists(slot)) complain("step {}: no such buffer", s);
      }
    }
    if (step.scratch.buffer.valid() && !exists(step.scratch))
      complain("step {}: no such scratch", s);
    for (const std::uint32_t wait : step.waits) {
      if (wait >= s) complain("step {}: waits for step {}, which does not come before it", s, wait);
    }
  }

  const Plan& plan_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> check_structure(const Plan& plan) {
  return StructureChecker(plan).run();
}

}  // namespace plimsoll::plan
