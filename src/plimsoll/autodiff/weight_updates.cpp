#include "plimsoll/autodiff/weight_updates.h"

#include <fmt/format.h>

#include "plimsoll/ops/elementwise/binary.h"

namespace plimsoll::autodiff {
namespace {

// min(1, limit / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_ has it.
Var clip_scale(Builder& builder, const std::vector<Var>& gradients, double limit) {
  builder.set_phase(ir::Phase::kBackward);
  builder.set_layer("clip");
  Var total;
  for (const Var& gradient : gradients) {
    if (!gradient) continue;
    const Var squares = builder.call1("sum_squares", {gradient});
    total = total ? total + squares : squares;
  }
  const Var ratio = limit / (builder.call1("sqrt", {total}) + 1e-6);
  const Var scale = builder.call1("minimum", {ratio, ops::number(ratio, 1.0)});
  builder.set_layer("");
  return scale;
}

}  // namespace

void Updates::add(Var weight, Var gradient, Var scale) {
  const ir::Phase phase = builder_.phase();
  const std::string layer = builder_.layer();
  builder_.set_phase(ir::Phase::kUpdate);
  builder_.set_layer("");
  if (adaptive() && !step_) count_step();
  const std::string weight_name = builder_.graph().value(weight.id()).name;
  builder_.set_layer(weight_name.substr(
      0, weight_name.find_last_of('.') == std::string::npos ? 0 : weight_name.find_last_of('.')));
  append(weight, weight_name, gradient, scale);
  builder_.set_phase(phase);
  builder_.set_layer(layer);
}

bool Updates::adaptive() const {
  return options_.optimizer == Optimizer::kAdam || options_.optimizer == Optimizer::kAdamW;
}

void Updates::count_step() {
  const Var step = builder_.source("optimizer.step", ir::ValueKind::kOptimizer,
                                   {ir::DType::kI64, {}, {}}, {ir::Init::Kind::kConstant, 0, 0});
  step_ = builder_.call1("increment", {step});
  builder_.update(step, step_);
}

Var Updates::moment(const std::string& weight_name, const char* which, const ir::TensorType& type) {
  return builder_.var(builder_.graph().add_source(fmt::format("{}.{}", weight_name, which),
                                                  ir::ValueKind::kOptimizer, type,
                                                  {ir::Init::Kind::kConstant, 0, 0}));
}

void Updates::append(Var weight, const std::string& weight_name, Var gradient, Var scale) {
  ir::Attributes attributes{{"lr", options_.learning_rate}};
  if (options_.optimizer == Optimizer::kAdamW || options_.decay_always)
    attributes.set("weight_decay", options_.weight_decay);
  std::vector<Var> inputs{weight, gradient};
  if (options_.optimizer == Optimizer::kMomentum) {
    attributes.set("momentum", options_.momentum);
    inputs.push_back(moment(weight_name, "momentum", weight.type()));
  } else if (adaptive()) {
    inputs.push_back(moment(weight_name, "m", weight.type()));
    inputs.push_back(moment(weight_name, "v", weight.type()));
    inputs.push_back(step_);
  }
  if (scale) inputs.push_back(scale);
  const std::vector<Var> next =
      builder_.call(name(options_.optimizer), inputs, std::move(attributes));
  builder_.update(weight, next[0]);
  for (std::size_t i = 1; i < next.size(); ++i) builder_.update(inputs[i + 1], next[i]);
}

void finish_updates(Builder& builder, const std::vector<Var>& weights,
                    const std::vector<Var>& gradients, const TrainingOptions& options) {
  Updates updates(builder, options);
  const Var scale =
      options.clip_norm > 0 ? clip_scale(builder, gradients, options.clip_norm) : Var();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (gradients[i]) updates.add(weights[i], gradients[i], scale);
  }
}

}  // namespace plimsoll::autodiff
