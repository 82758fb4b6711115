#include "plimsoll/plan/plan.h"

#include <algorithm>
#include <array>

#include "plimsoll/codec/codec.h"

namespace plimsoll::plan {

std::string_view name(StepKind kind) {
  static constexpr std::array<std::string_view, kStepKindCount> kNames = {
      "compute", "recompute", "send_out", "bring_in", "encode", "decode", "drop"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name(Use use) {
  static constexpr std::array<std::string_view, kUseCount> kNames = {
      "inputs", "outputs", "weights", "optimizer", "activations", "gradients", "temporaries"};
  return kNames[static_cast<std::size_t>(use)];
}

Use use_of(const ir::Graph& graph, ValueId id, bool is_output) {
  switch (graph.value(id).kind) {
    case ir::ValueKind::kInput:
      return Use::kInput;
    case ir::ValueKind::kWeight:
    case ir::ValueKind::kState:
    case ir::ValueKind::kConstant:
      return Use::kWeight;
    case ir::ValueKind::kOptimizer:
      return Use::kOptimizer;
    case ir::ValueKind::kGradient:
      return Use::kGradient;
    case ir::ValueKind::kActivation:
      return is_output ? Use::kOutput : Use::kActivation;
  }
  return Use::kActivation;
}

std::vector<std::string> lossy_forms_of(const Plan& plan) {
  std::vector<std::string> out;
  for (const PlanStep& step : plan.steps) {
    const codec::Codec* codec =
        step.kind == StepKind::kEncode ? codec::find_codec(step.codec) : nullptr;
    const bool known = std::find(out.begin(), out.end(), step.codec) != out.end();
    if (codec != nullptr && !codec->lossless && !known) out.push_back(step.codec);
  }
  return out;
}

std::vector<Bytes> bytes_by_step(const Plan& plan) {
  // sources lie somewhere even if nothing runs
  const std::size_t steps = std::max<std::size_t>(plan.steps.size(), 1);
  std::vector<Bytes> change(steps + 1);
  for (const PlanBuffer& buffer : plan.buffers) {
    if (buffer.arena != 0 || buffer.lifetime.empty()) continue;
    change[std::min(steps, static_cast<std::size_t>(buffer.lifetime.begin.value))] += buffer.bytes;
    change[std::min(steps, static_cast<std::size_t>(buffer.lifetime.end.value))] -= buffer.bytes;
  }
  Bytes alive;
  for (Bytes& step : change) step = alive += step;
  change.resize(steps);
  return change;
}

Held held_for_backward(const Plan& plan) {
  const auto turn = std::find_if(plan.steps.begin(), plan.steps.end(), [&](const PlanStep& step) {
    return step.node.valid() && plan.graph.node(step.node).phase == ir::Phase::kBackward;
  });
  Held out;
  if (turn == plan.steps.end()) return out;
  const Step at(static_cast<std::int32_t>(turn - plan.steps.begin()));
  for (const PlanBuffer& buffer : plan.buffers) {
    if (buffer.arena != 0 || buffer.use != Use::kActivation || buffer.lifetime.begin >= at ||
        buffer.lifetime.end <= at)
      continue;
    out.bytes += buffer.bytes;
    out.as_fp32 += Bytes(plan.graph.value(buffer.value).type.shape.elements() * 4);
  }
  return out;
}

std::vector<Bytes> bytes_by_use_at_peak(const Plan& plan) {
  const std::vector<Bytes> alive = bytes_by_step(plan);
  const auto peak = Step(std::max_element(alive.begin(), alive.end()) - alive.begin());
  std::vector<Bytes> out(kUseCount);
  for (const PlanBuffer& buffer : plan.buffers) {
    if (buffer.arena == 0 && buffer.lifetime.contains(peak))
      out[static_cast<std::size_t>(buffer.use)] += buffer.bytes;
  }
  return out;
}

}  // namespace plimsoll::plan
