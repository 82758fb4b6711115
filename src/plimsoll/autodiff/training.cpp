#include "plimsoll/autodiff/training.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "plimsoll/autodiff/differentiate.h"
#include "plimsoll/autodiff/micro_batch.h"
#include "plimsoll/autodiff/update_order.h"
#include "plimsoll/ops/elementwise/binary.h"

namespace plimsoll::autodiff {
namespace {

constexpr std::array<std::string_view, 4> kOptimizerNames = {"sgd", "momentum", "adam", "adamw"};

// Appends update nodes and the optimizer's own state.
class Updates {
 public:
  Updates(Builder& builder, const TrainingOptions& options)
      : builder_(builder), options_(options) {}

  void add(Var weight, Var gradient, Var scale) {
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

 private:
  bool adaptive() const {
    return options_.optimizer == Optimizer::kAdam || options_.optimizer == Optimizer::kAdamW;
  }

  void count_step() {
    const Var step = builder_.source("optimizer.step", ir::ValueKind::kOptimizer,
                                     {ir::DType::kI64, {}, {}}, {ir::Init::Kind::kConstant, 0, 0});
    step_ = builder_.call1("increment", {step});
    builder_.update(step, step_);
  }

  Var moment(const std::string& weight_name, const char* which, const ir::TensorType& type) {
    return builder_.var(builder_.graph().add_source(fmt::format("{}.{}", weight_name, which),
                                                    ir::ValueKind::kOptimizer, type,
                                                    {ir::Init::Kind::kConstant, 0, 0}));
  }

  void append(Var weight, const std::string& weight_name, Var gradient, Var scale) {
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

  Builder& builder_;
  const TrainingOptions& options_;
  Var step_;
};

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

std::string_view name(Optimizer optimizer) {
  return kOptimizerNames[static_cast<std::size_t>(optimizer)];
}

double default_learning_rate(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::kSgd:
      return 3e-3;
    case Optimizer::kMomentum:
      return 1e-3;
    case Optimizer::kAdam:
    case Optimizer::kAdamW:
      return 3e-4;
  }
  return 1e-3;
}

Result<Optimizer> parse_optimizer(std::string_view text) {
  const auto place = std::find(kOptimizerNames.begin(), kOptimizerNames.end(), text);
  if (place == kOptimizerNames.end()) {
    return fail(ErrorCode::kUsage, "optimizer '{}': expects sgd, momentum, adam or adamw", text);
  }
  return static_cast<Optimizer>(place - kOptimizerNames.begin());
}

bool matches_glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::vector<ValueId> trained_weights(const ir::Graph& forward, const TrainingOptions& options) {
  std::vector<char> reaches(forward.values.size(), 0);
  if (!forward.outputs.empty()) reaches[forward.outputs.front().index()] = 1;
  for (std::size_t n = forward.nodes.size(); n-- > 0;) {
    const ir::Node& node = forward.nodes[n];
    const bool used = std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [&](ValueId id) { return reaches[id.index()]; });
    if (!used) continue;
    for (const ValueId input : node.inputs) {
      if (input.valid()) reaches[input.index()] = 1;
    }
  }
  std::vector<ValueId> out;
  for (std::size_t v = 0; v < forward.values.size(); ++v) {
    const ir::Value& value = forward.values[v];
    if (value.kind != ir::ValueKind::kWeight || !reaches[v] || !ir::is_float(value.type.dtype))
      continue;
    const bool frozen =
        std::any_of(options.freeze.begin(), options.freeze.end(),
                    [&](const std::string& pattern) { return matches_glob(pattern, value.name); });
    if (!frozen) out.emplace_back(v);
  }
  return out;
}

Result<ir::Graph> make_training_graph(const ir::Graph& forward, const TrainingOptions& options) {
  if (forward.outputs.empty())
    return bad_input("model '{}': has no output to use as the loss", forward.name);
  const ir::Value& loss_value = forward.value(forward.outputs.front());
  if (loss_value.type.shape.elements() != 1 || !ir::is_float(loss_value.type.dtype)) {
    return bad_input(
        "model '{}': its first output '{}' is {}, a loss is one float; name one with --loss",
        forward.name, loss_value.name, ir::to_string(loss_value.type));
  }
  if (options.accumulate < 1)
    return fail(ErrorCode::kUsage, "accumulate {}: expects at least 1", options.accumulate);
  for (const std::string& pattern : options.freeze) {
    const bool matches =
        std::any_of(forward.values.begin(), forward.values.end(), [&](const ir::Value& value) {
          return value.kind == ir::ValueKind::kWeight && matches_glob(pattern, value.name);
        });
    if (!matches)
      return fail(ErrorCode::kUsage, "freeze '{}': no weight of model '{}' has such a name",
                  pattern, forward.name);
  }
  if (options.accumulate > 1) return make_accumulating_graph(forward, options);

  const std::vector<ValueId> weights = trained_weights(forward, options);
  if (weights.empty())
    return bad_input("model '{}': no weight to train (all frozen, or the loss depends on none)",
                     forward.name);
  Builder builder(forward);
  const Var loss = builder.var(forward.outputs.front());
  std::vector<Var> wrt;
  for (const ValueId id : weights) wrt.push_back(builder.var(id));

  Updates updates(builder, options);
  const bool early = options.clip_norm <= 0 && !options.gradients_as_outputs;
  DifferentiateOptions how;
  if (early)
    how.on_complete = [&](std::size_t i, Var gradient) { updates.add(wrt[i], gradient, {}); };
  PLIMSOLL_TRY(const std::vector<Var> gradients, differentiate(builder, loss, wrt, how));
  if (!early) finish_updates(builder, wrt, gradients, options);

  std::vector<Var> outputs;
  for (const ValueId id : forward.outputs) outputs.push_back(builder.var(id));
  if (options.gradients_as_outputs)
    outputs.insert(outputs.end(), gradients.begin(), gradients.end());
  PLIMSOLL_TRY(ir::Graph graph, builder.finish(outputs));
  return updates_behind_readers(std::move(graph));
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
