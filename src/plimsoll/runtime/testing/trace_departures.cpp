#include "plimsoll/runtime/testing/trace_departures.h"

#include <map>
#include <set>

#include <fmt/format.h>

#include "plimsoll/runtime/planned.h"

namespace plimsoll::runtime {
namespace {

constexpr std::size_t kMost = 100;

// By name: where the plan puts it in device memory, once or several times.
using Places = std::map<std::string, std::set<std::int64_t>, std::less<>>;

Places places_of(const plan::Plan& plan) {
  Places out;
  const auto add = [&](const std::string& name, const plan::Slot& slot) {
    if (!slot.buffer.valid() || plan.buffer(slot.buffer).arena != 0) return;
    out[name].insert(plan::place_of(plan, slot).value);
  };
  for (const plan::ValueSlot& source : plan.sources)
    add(plan.graph.value(source.value).name, source.slot);
  for (const plan::PlanStep& step : plan.steps) {
    if (!step.node.valid()) {
      for (const plan::Slot& slot : step.outputs) add(plan.graph.value(step.value).name, slot);
      continue;
    }
    const ir::Node& node = plan.graph.node(step.node);
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      add(plan.graph.value(node.outputs[i]).name, step.outputs[i]);
    add(call_name(plan, step) + " scratch", step.scratch);
  }
  return out;
}

}  // namespace

std::vector<std::string> trace_departures(const plan::Plan& plan, const trace::Trace& trace) {
  std::vector<std::string> out;
  const Places places = places_of(plan);
  for (const trace::Event& event : trace.events) {
    if (event.kind != trace::EventKind::kAllocation || out.size() >= kMost) continue;
    const std::string_view name = trace.strings.text(event.name);
    const auto found = places.find(name);
    if (found == places.end()) {
      out.push_back(
          fmt::format("'{}' was at offset {}, the plan has no place for it", name, event.address));
    } else if (!found->second.contains(static_cast<std::int64_t>(event.address))) {
      out.push_back(fmt::format("'{}' was at offset {}, the plan has it at {}", name, event.address,
                                *found->second.begin()));
    }
    const std::int64_t end = static_cast<std::int64_t>(event.address) + event.bytes.value;
    if (end > plan.arena_bytes().value) {
      out.push_back(fmt::format("'{}' reached offset {}, the plan's arena ends at {}", name, end,
                                plan.arena_bytes()));
    }
  }
  const Bytes peak = trace::peak_live_bytes(trace);
  if (peak > plan.arena_bytes()) {
    out.push_back(fmt::format("{} bytes were alive at once, the plan's arena has {}", peak,
                              plan.arena_bytes()));
  }
  return out;
}

}  // namespace plimsoll::runtime
