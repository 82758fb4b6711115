#include "plimsoll/report/account_of_plan.h"

#include <algorithm>

#include <fmt/format.h>

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

void add_steps(const plan::Plan& plan, Account& account) {
  const std::vector<Bytes> alive = plan::bytes_by_step(plan);
  double now = 0;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const plan::PlanStep& step = plan.steps[s];
    account.seconds.push_back(now);
    // Copies run beside the computation: only what computes moves the clock.
    const bool copies =
        step.kind == plan::StepKind::kSendOut || step.kind == plan::StepKind::kBringIn;
    if (!copies) now += step.seconds;
    Operator& op = account.operators.emplace_back();
    const ir::Node* node = node_of(plan, step);
    op.name = account.texts.intern(step_name(plan, step));
    op.layer = account.texts.intern(node == nullptr ? "" : node->layer);
    op.phase = account.texts.intern(node == nullptr ? "" : ir::name(node->phase));
    op.what = account.texts.intern(fmt::format(
        "{}{}", plan::name(step.kind), schedule::is_lossy_form(step.codec) ? "_lossy" : ""));
    op.tick = Step(static_cast<std::int64_t>(s));
    op.seconds = step.seconds;
    op.stream = step.stream;
    op.alive = alive[s];
    for (const BufferId id : buffers_of(step)) {
      if (plan.buffer(id).arena == 0) op.touched += plan.buffer(id).bytes;
    }
  }
  account.seconds.push_back(now);
  // sources lie somewhere even if nothing runs
  if (plan.steps.empty()) account.seconds.push_back(now);
}

void add_buffers(const plan::Plan& plan, Account& account) {
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    const plan::PlanBuffer& buffer = plan.buffers[b];
    Band& band = account.bands.emplace_back();
    band.buffer = BufferId(b);
    band.name = account.texts.intern(buffer.name);
    band.kind = kind_of(buffer.use);
    band.memory = buffer.arena;
    band.bytes = buffer.bytes;
    band.place = buffer.offset;
    band.life = buffer.lifetime;
    if (buffer.value.valid()) {
      const ir::Value& value = plan.graph.value(buffer.value);
      band.type = account.texts.intern(ir::to_string(value.type));
      const bool made = value.producer.valid();
      band.layer =
          account.texts.intern(made ? std::string_view(plan.graph.node(value.producer).layer)
                                    : layer_of_source(value.name, band.kind));
    } else {
      band.layer = account.texts.intern(layer_of_name(buffer.name));
    }
  }
}

void link_steps(const plan::Plan& plan, Account& account) {
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const plan::PlanStep& step = plan.steps[s];
    const auto index = static_cast<std::int32_t>(s);
    for (const plan::Slot& slot : step.inputs) {
      const bool reads = step.kind != plan::StepKind::kDrop && slot.buffer.valid();
      if (reads) account.bands[slot.buffer.index()].last_reader = index;
    }
    for (const plan::Slot& slot : step.outputs) {
      Band& band = account.bands[slot.buffer.index()];
      if (band.producer < 0 && band.life.begin.value == index) band.producer = index;
    }
  }
  for (Band& band : account.bands) {
    if (band.life.empty()) continue;
    const auto first = static_cast<std::size_t>(band.life.begin.value);
    const bool source = band.producer < 0 && band.kind != Kind::kTemporaries;
    band.phase = source ? account.texts.intern("resident") : account.operators[first].phase;
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
  if (step.kind == plan::StepKind::kCompute) return name;
  if (step.codec.empty()) return fmt::format("{} {}", plan::name(step.kind), name);
  return fmt::format("{} {} ({}{})", plan::name(step.kind), name, step.codec,
                     schedule::is_lossy_form(step.codec) ? ", lossy" : "");
}

Account account_of(const plan::Plan& plan, std::string title) {
  Account account;
  account.title = std::move(title);
  account.source = "plan";
  for (const plan::Arena& arena : plan.arenas) account.memories.push_back(arena.name);
  if (account.memories.empty()) account.memories.push_back("device");
  account.streams = {"compute"};
  account.arena = plan.arena_bytes();
  account.lower_bound = plan.proof.lower_bound;
  account.budget = plan.budget;
  add_steps(plan, account);
  add_buffers(plan, account);
  link_steps(plan, account);
  std::erase_if(account.bands,
                [](const Band& band) { return band.life.empty() || band.bytes.value <= 0; });
  sort_bands(account);
  return account;
}

}  // namespace plimsoll::report
