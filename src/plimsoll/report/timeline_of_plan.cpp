#include "plimsoll/report/timeline_of_plan.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "plimsoll/ops/products/encoded_weight.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/plan/step_words.h"
#include "plimsoll/schedule/workload/graph_encodings.h"

namespace plimsoll::report {
namespace {

Kind kind_of(plan::Use use) {
  switch (use) {
    case plan::Use::kInput:
      return Kind::kInputs;
    case plan::Use::kOutput:
      return Kind::kOutputs;
    case plan::Use::kWeight:
      return Kind::kWeights;
    case plan::Use::kOptimizer:
      return Kind::kOptimizer;
    case plan::Use::kActivation:
      return Kind::kActivations;
    case plan::Use::kGradient:
      return Kind::kGradients;
    case plan::Use::kTemporary:
      return Kind::kTemporaries;
  }
  return Kind::kUnlabelled;
}

const ir::Node* node_of(const plan::Plan& plan, const plan::PlanStep& step) {
  if (step.node.valid()) return &plan.graph.node(step.node);
  if (!step.value.valid()) return nullptr;
  const NodeId producer = plan.graph.value(step.value).producer;
  return producer.valid() ? &plan.graph.node(producer) : nullptr;
}

// Buffers a step touches, each once.
std::vector<BufferId> buffers_of(const plan::PlanStep& step) {
  std::vector<BufferId> out;
  const auto add = [&out](const plan::Slot& slot) {
    if (slot.buffer.valid()) out.push_back(slot.buffer);
  };
  for (const plan::Slot& slot : step.inputs) add(slot);
  for (const plan::Slot& slot : step.outputs) add(slot);
  add(step.scratch);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void add_steps(const plan::Plan& plan, Timeline& timeline) {
  const std::vector<Bytes> alive = plan::bytes_by_step(plan);
  double now = 0;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const plan::PlanStep& step = plan.steps[s];
    timeline.seconds.push_back(now);
    // Copies run beside the computation: only what computes moves the clock.
    const bool copies =
        step.kind == plan::StepKind::kCopyOut || step.kind == plan::StepKind::kCopyIn;
    if (!copies) now += step.seconds;
    Operator& op = timeline.operators.emplace_back();
    const ir::Node* node = node_of(plan, step);
    op.name = timeline.texts.intern(step_name(plan, step));
    op.layer = timeline.texts.intern(node == nullptr ? "" : node->layer);
    op.phase = timeline.texts.intern(node == nullptr ? "" : ir::name(node->phase));
    op.what = timeline.texts.intern(fmt::format(
        "{}{}", plan::name(step.kind), schedule::is_lossy_form(step.codec) ? "_lossy" : ""));
    op.time_step = Step(static_cast<std::int64_t>(s));
    op.seconds = step.seconds;
    op.stream = step.stream;
    op.alive = alive[s];
    for (const BufferId id : buffers_of(step)) {
      if (plan.buffer(id).arena == 0) op.touched += plan.buffer(id).bytes;
    }
  }
  timeline.seconds.push_back(now);
  // sources lie somewhere even if nothing runs
  if (plan.steps.empty()) timeline.seconds.push_back(now);
}

// "fp32[50257,768] as q8_0" of a weight that stays encoded.
std::string type_of(const plan::Plan& plan, ValueId id,
                    const std::map<ValueId, const ir::Node*>& encoded) {
  const auto reader = encoded.find(id);
  if (reader == encoded.end()) return ir::to_string(plan.graph.value(id).type);
  const ops::AttributeReader attributes = ops::attributes_of(*reader->second);
  return fmt::format("{}[{}] as {}", attributes.text("dtype"),
                     fmt::join(attributes.integers("dims"), ","), attributes.text("form"));
}

void add_buffers(const plan::Plan& plan, Timeline& timeline) {
  const auto read = ops::encoded_weights(plan.graph);
  const std::map<ValueId, const ir::Node*> none;
  const auto& encoded = read ? *read : none;
  timeline.encoded_weights = static_cast<std::int64_t>(encoded.size());
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const plan::PlanBuffer& buffer = plan.buffers[b];
    Allocation& allocation = timeline.allocations.emplace_back();
    allocation.buffer = BufferId(b);
    allocation.name = timeline.texts.intern(buffer.name);
    allocation.kind = kind_of(buffer.use);
    allocation.memory = buffer.arena;
    allocation.bytes = buffer.bytes;
    allocation.place = buffer.offset;
    allocation.life = buffer.lifetime;
    if (buffer.value.valid()) {
      const ir::Value& value = plan.graph.value(buffer.value);
      allocation.type = timeline.texts.intern(type_of(plan, buffer.value, encoded));
      const bool made = value.producer.valid();
      allocation.layer =
          timeline.texts.intern(made ? std::string_view(plan.graph.node(value.producer).layer)
                                     : layer_of_source(value.name, allocation.kind));
    } else {
      allocation.layer = timeline.texts.intern(layer_of_name(buffer.name));
    }
  }
}

void link_steps(const plan::Plan& plan, Timeline& timeline) {
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const plan::PlanStep& step = plan.steps[s];
    const auto index = static_cast<std::int32_t>(s);
    for (const plan::Slot& slot : step.inputs) {
      const bool reads = step.kind != plan::StepKind::kDrop && slot.buffer.valid();
      if (reads) timeline.allocations[slot.buffer.index()].last_reader = index;
    }
    for (const plan::Slot& slot : step.outputs) {
      Allocation& allocation = timeline.allocations[slot.buffer.index()];
      if (allocation.producer < 0 && allocation.life.begin.value == index)
        allocation.producer = index;
    }
  }
  for (Allocation& allocation : timeline.allocations) {
    if (allocation.life.empty()) continue;
    const auto first = static_cast<std::size_t>(allocation.life.begin.value);
    const bool source = allocation.producer < 0 && allocation.kind != Kind::kTemporaries;
    allocation.phase = source ? timeline.texts.intern("resident") : timeline.operators[first].phase;
  }
}

}  // namespace

std::string step_name(const plan::Plan& plan, const plan::PlanStep& step) {
  const ir::Node* node = node_of(plan, step);
  std::string name;
  if (node != nullptr) {
    name = node->layer.empty() ? node->op : node->layer + "/" + node->op;
  } else if (step.value.valid()) {
    name = plan.graph.value(step.value).name;
  }
  return plan::step_words(step, name);
}

Timeline timeline_of(const plan::Plan& plan, std::string title) {
  Timeline timeline;
  timeline.title = std::move(title);
  timeline.source = "plan";
  for (const plan::Arena& arena : plan.arenas) timeline.memories.push_back(arena.name);
  if (timeline.memories.empty()) timeline.memories.push_back("device");
  timeline.streams = {"compute"};
  timeline.arena = plan.arena_bytes();
  timeline.lower_bound = plan.proof.lower_bound;
  timeline.budget = plan.budget;
  timeline.predicted_seconds = plan.predicted_seconds;
  add_steps(plan, timeline);
  add_buffers(plan, timeline);
  link_steps(plan, timeline);
  std::erase_if(timeline.allocations, [](const Allocation& allocation) {
    return allocation.life.empty() || allocation.bytes.value <= 0;
  });
  sort_allocations(timeline);
  return timeline;
}

}  // namespace plimsoll::report
