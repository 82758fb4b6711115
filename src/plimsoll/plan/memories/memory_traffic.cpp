#include "plimsoll/plan/memories/memory_traffic.h"

#include <algorithm>

namespace plimsoll::plan {
namespace {

constexpr std::uint8_t kHomeArena = 0;

class Traffic {
 public:
  Traffic(const Plan& plan, const CostPartsOf& cost, double home_rate)
      : plan_(plan), cost_(cost), home_rate_(home_rate) {
    out_.buffers.resize(plan.buffers.size());
    out_.steps.resize(plan.steps.size());
    for (std::size_t b = 0; b < plan.buffers.size(); ++b)
      out_.buffers[b].movable = plan.buffers[b].arena == kHomeArena;
  }

  MemoryTraffic run() {
    for (const ValueSlot& source : plan_.sources) {
      BufferTraffic& buffer = of(source.slot);
      if (buffer.source || source.slot.offset.value != 0) buffer.movable = false;
      buffer.source = true;
      buffer.begins_with = source.value;
      // State is there again for the next step.
      buffer.lasting =
          buffer.lasting || plan_.graph.value(source.value).kind != ir::ValueKind::kInput;
    }
    for (const ValueSlot& result : plan_.results) of(result.slot).lasting = true;
    for (const std::vector<BufferId>& group : plan_.contiguous) {
      for (const BufferId id : group) out_.buffers[id.index()].movable = false;
    }
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) add_step(s);
    return std::move(out_);
  }

 private:
  BufferTraffic& of(const Slot& slot) { return out_.buffers[slot.buffer.index()]; }

  void add_step(std::size_t s) {
    const PlanStep& step = plan_.steps[s];
    StepTraffic& traffic = out_.steps[s];
    traffic.parts.seconds = step.seconds;
    if (!step.node.valid()) {
      for (const auto* slots : {&step.inputs, &step.outputs}) {
        for (const Slot& slot : *slots) {
          if (slot.buffer.valid()) of(slot).movable = false;
        }
      }
      return;
    }
    const ir::Node& node = plan_.graph.node(step.node);
    traffic.parts = cost_(plan_.graph, node);
    double bytes = 0;
    for (const ValueId in : node.inputs) bytes += in.valid() ? bytes_of(in) : 0;
    for (const ValueId out : node.outputs) bytes += bytes_of(out);
    // Operators that look at a part of their inputs move less than those have.
    const double share = bytes > 0 ? traffic.parts.bytes_moved / bytes : 0;
    traffic.home_seconds = traffic.parts.bytes_moved / home_rate_;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (!step.inputs[i].buffer.valid()) continue;
      touch(s, step.inputs[i]).read_bytes += share * bytes_of(node.inputs[i]);
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      Touch& made = touch(s, step.outputs[i]);
      BufferTraffic& buffer = of(step.outputs[i]);
      if (step.outputs[i].offset.value != 0 || (made.writes && made.holds.valid()))
        buffer.movable = false;
      made.writes = buffer.written = true;
      made.written_bytes += share * bytes_of(node.outputs[i]);
      made.holds = node.outputs[i];
    }
    if (step.scratch.buffer.valid()) {
      touch(s, step.scratch).writes = true;
      of(step.scratch).written = true;
    }
  }

  double bytes_of(ValueId value) const {
    return static_cast<double>(ir::bytes_of(plan_.graph.value(value).type).value);
  }

  Touch& touch(std::size_t s, const Slot& slot) {
    BufferTraffic& buffer = of(slot);
    const auto at = static_cast<std::int32_t>(s);
    if (buffer.touches.empty() || buffer.touches.back().step != at) {
      const ValueId before =
          buffer.touches.empty() ? buffer.begins_with : buffer.touches.back().holds;
      out_.steps[s].touches.emplace_back(static_cast<std::int32_t>(slot.buffer.index()),
                                         static_cast<std::int32_t>(buffer.touches.size()));
      buffer.touches.push_back({at, false, 0, 0, before});
    }
    return buffer.touches.back();
  }

  const Plan& plan_;
  const CostPartsOf& cost_;
  double home_rate_;
  MemoryTraffic out_;
};

}  // namespace

MemoryTraffic traffic_of(const Plan& plan, const CostPartsOf& cost, double home_bytes_per_second) {
  return Traffic(plan, cost, home_bytes_per_second).run();
}

}  // namespace plimsoll::plan
