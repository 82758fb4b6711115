#include "plimsoll/ops/update/update.h"

#include <cmath>

#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/expect.h"
#include "plimsoll/ops/definition/rules.h"

namespace plimsoll::ops {
namespace {

// What an update reads besides the weight, in order: gradient, moments, step, scale.
struct UpdateForm {
  int moments;
  bool counts_steps;
  int scale_input() const { return 2 + moments + (counts_steps ? 1 : 0); }
};

// Of the weight's type, or as mixed precision makes it, narrower.
Status expect_gradient(const Call& call) {
  const ir::DType given = call.type(1).dtype;
  const bool narrower = call.type(0).dtype == ir::DType::kF32 &&
                        (given == ir::DType::kBF16 || given == ir::DType::kF16);
  return narrower ? expect_shape(call, 1, call.shape(0)) : expect_like(call, 1, 0);
}

// Moments of the weight, or of a part of it that lies within.
Status expect_moments(const Call& call, int moments) {
  const auto first = moments > 0 ? first_of_update(call.attributes()) : std::nullopt;
  if (!first) {
    for (int i = 2; i <= 1 + moments; ++i) PLIMSOLL_RETURN_IF_ERROR(expect_like(call, i, 0));
    return {};
  }
  const std::int64_t elements = call.shape(0).elements();
  const std::int64_t count = call.shape(2).elements();
  if (*first < 0 || *first > elements || count > elements - *first)
    return bad_input("first: {} elements from {} on, of a weight of {}", count, *first, elements);
  for (int i = 0; i < 2; ++i) {
    if (!call.type(i).layout.is_row_major())
      return bad_input("input {} does not lie row by row: no part of it can be updated", i);
  }
  for (int i = 2; i <= 1 + moments; ++i)
    PLIMSOLL_RETURN_IF_ERROR(expect_type(call, i, call.type(0).dtype, {count}));
  return {};
}

template <int kMoments, bool kCountsSteps>
Result<std::vector<TensorType>> infer_update(const Call& call) {
  constexpr UpdateForm form{kMoments, kCountsSteps};
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, 0));
  PLIMSOLL_RETURN_IF_ERROR(expect_gradient(call));
  PLIMSOLL_RETURN_IF_ERROR(expect_moments(call, kMoments));
  if (form.counts_steps) {
    PLIMSOLL_RETURN_IF_ERROR(expect_type(call, 2 + form.moments, ir::DType::kI64, {}));
  }
  if (call.has(form.scale_input())) {
    PLIMSOLL_RETURN_IF_ERROR(expect_own_or_wide(call, form.scale_input(), call.type(0).dtype));
    PLIMSOLL_RETURN_IF_ERROR(expect_shape(call, form.scale_input(), {}));
  }
  std::vector<TensorType> out{call.type(0)};
  for (int i = 0; i < form.moments; ++i) out.push_back(call.type(2 + i));
  return out;
}

double scale_of(const Evaluation& e, UpdateForm form) {
  return e.has(form.scale_input()) ? e.in(form.scale_input()).reals[0] : 1.0;
}

// Elements of the weight that are updated, and where the moments of the first of them stand.
struct UpdatedRange {
  std::size_t begin;
  std::size_t end;
};

// Results over their inputs, of which the range becomes the next version.
UpdatedRange begin_update(const Evaluation& e) {
  const auto first = static_cast<std::size_t>(first_of_update(e.attributes).value_or(0));
  e.out(0).reals = e.in(0).reals;
  return {first, first + e.in(2).reals.size()};
}

// Without decay the weight has no part, not even when it is infinite.
double decayed(double gradient, double decay, double weight) {
  return decay == 0 ? gradient : gradient + decay * weight;
}

void evaluate_sgd(const Evaluation& e) {
  const double lr = e.attributes.real("lr");
  const double decay = e.attributes.real("weight_decay");
  const double scale = scale_of(e, {0, false});
  for (std::size_t i = 0; i < e.in(0).reals.size(); ++i) {
    const double w = e.in(0).reals[i];
    e.out().reals[i] = w - lr * decayed(scale * e.in(1).reals[i], decay, w);
  }
}

void evaluate_momentum(const Evaluation& e) {
  const double lr = e.attributes.real("lr");
  const double decay = e.attributes.real("weight_decay");
  const double keep = e.attributes.real("momentum");
  const double scale = scale_of(e, {1, false});
  const auto [begin, end] = begin_update(e);
  for (std::size_t i = begin; i < end; ++i) {
    const double w = e.in(0).reals[i];
    const double m = keep * e.in(2).reals[i - begin] + decayed(scale * e.in(1).reals[i], decay, w);
    e.out(1).reals[i - begin] = m;
    e.out(0).reals[i] = w - lr * m;
  }
}

template <bool kDecoupled>
void evaluate_adam(const Evaluation& e) {
  const double lr = e.attributes.real("lr");
  const double beta1 = e.attributes.real("beta1");
  const double beta2 = e.attributes.real("beta2");
  const double epsilon = e.attributes.real("epsilon");
  const double decay = e.attributes.real("weight_decay");
  const double scale = scale_of(e, {2, true});
  const auto step = static_cast<double>(e.in(4).integers[0]);
  const double rate = lr / (1 - std::pow(beta1, step));
  const double root = std::sqrt(1 - std::pow(beta2, step));
  const auto [begin, end] = begin_update(e);
  for (std::size_t i = begin; i < end; ++i) {
    double w = e.in(0).reals[i];
    double g = scale * e.in(1).reals[i];
    if (kDecoupled) {
      w -= lr * decay * w;
    } else {
      g = decayed(g, decay, w);
    }
    const double m = beta1 * e.in(2).reals[i - begin] + (1 - beta1) * g;
    const double v = beta2 * e.in(3).reals[i - begin] + (1 - beta2) * g * g;
    e.out(1).reals[i - begin] = m;
    e.out(2).reals[i - begin] = v;
    e.out(0).reals[i] = w - rate * m / (std::sqrt(v) / root + epsilon);
  }
}

// One weight of a group, as adamw sees it.
Call one_of_group(const Call& call, int weight) {
  std::vector<const TensorType*> inputs;
  for (int kind = 0; kind < 4; ++kind) inputs.push_back(&call.type(kind * kUpdateGroup + weight));
  inputs.push_back(&call.type(4 * kUpdateGroup));
  return Call(std::move(inputs), call.attributes());
}

Result<std::vector<TensorType>> infer_adamw_group(const Call& call) {
  std::vector<TensorType> out(std::size_t{3} * kUpdateGroup);
  for (int weight = 0; weight < kUpdateGroup; ++weight) {
    auto types = infer_update<2, true>(one_of_group(call, weight));
    if (!types) return forward(types, fmt::format("weight {}", weight));
    for (int kind = 0; kind < 3; ++kind)
      out[static_cast<std::size_t>(kind * kUpdateGroup + weight)] =
          (*types)[static_cast<std::size_t>(kind)];
  }
  return out;
}

void evaluate_adamw_group(const Evaluation& e) {
  for (int weight = 0; weight < kUpdateGroup; ++weight) {
    std::vector<const Array*> inputs;
    std::vector<Array> outputs;
    for (int kind = 0; kind < 4; ++kind) inputs.push_back(&e.in(kind * kUpdateGroup + weight));
    inputs.push_back(&e.in(4 * kUpdateGroup));
    for (int kind = 0; kind < 3; ++kind)
      outputs.push_back(std::move(e.out(kind * kUpdateGroup + weight)));
    evaluate_adam<true>({inputs, outputs, e.attributes});
    for (int kind = 0; kind < 3; ++kind)
      e.out(kind * kUpdateGroup + weight) = std::move(outputs[static_cast<std::size_t>(kind)]);
  }
}

// Of a part only its elements are touched: of the weight, the gradient and the moments.
template <int kOperations>
Cost moments_cost(const Call& call, std::span<const TensorType> outputs) {
  if (!first_of_update(call.attributes())) return cost_per_element<kOperations>(call, outputs);
  const double count = element_count(call.shape(2));
  const auto bytes = [&](const TensorType& type) { return count * ir::bits(type.dtype) / 8; };
  const double moments = static_cast<double>(outputs.size() - 1) * bytes(call.type(2));
  return {kOperations * count, bytes(call.type(0)) + bytes(call.type(1)) + moments,
          bytes(call.type(0)) + moments};
}

Cost adamw_group_cost(const Call& call, std::span<const TensorType> outputs) {
  double elements = 0;
  for (const TensorType& type : outputs.first(kUpdateGroup)) elements += element_count(type.shape);
  return cost_with(16 * elements, call, outputs);
}

// Weights over weights, moments over moments.
std::vector<InPlace::Pair> group_pairs() {
  std::vector<InPlace::Pair> out;
  for (int i = 0; i < kUpdateGroup; ++i) out.push_back({i, i});
  for (int i = kUpdateGroup; i < 3 * kUpdateGroup; ++i) out.push_back({i, i + kUpdateGroup});
  return out;
}

Result<std::vector<TensorType>> infer_increment(const Call& call) {
  if (ir::is_float(call.type(0).dtype)) {
    return bad_input("input 0 is {}, expects an integer", ir::name(call.type(0).dtype));
  }
  return std::vector{call.type(0)};
}

void evaluate_increment(const Evaluation& e) {
  const auto by = static_cast<std::uint64_t>(e.attributes.integer("by"));
  for (std::size_t i = 0; i < e.in(0).integers.size(); ++i) {
    e.out().integers[i] =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(e.in(0).integers[i]) + by);
  }
}

Result<std::vector<TensorType>> infer_accumulate(const Call& call) {
  PLIMSOLL_RETURN_IF_ERROR(expect_float(call, 0));
  PLIMSOLL_RETURN_IF_ERROR(expect_like(call, 1, 0));
  return std::vector{call.type(0)};
}

void evaluate_accumulate(const Evaluation& e) {
  for (std::size_t i = 0; i < e.in(0).reals.size(); ++i) {
    e.out().reals[i] = e.in(0).reals[i] + e.in(1).reals[i];
  }
}

OpDefinition update_definition(std::string_view name, Arity inputs,
                               std::vector<InPlace::Pair> pairs, InferRule infer, CostRule cost,
                               EvaluateRule evaluate) {
  return {.name = name,
          .inputs = inputs,
          .outputs = exactly(static_cast<int>(pairs.size())),
          .infer = infer,
          .gradient = Gradient::none(),
          .in_place = InPlace::update(std::move(pairs)),
          .cost = cost,
          .recompute = Recompute::kNever,
          .layout = LayoutRule::kAny,
          .evaluate = evaluate};
}

Updated call_update(std::string_view op, std::vector<Var> inputs, Var scale,
                    ir::Attributes attributes) {
  if (scale) inputs.push_back(scale);
  Builder& builder = inputs.front().builder();
  std::vector<Var> out = builder.call(op, std::move(inputs), std::move(attributes));
  out.resize(3);
  return {out[0], out[1], out[2]};
}

ir::Attributes adam_attributes(const UpdateOptions& options) {
  return {{"lr", options.lr},
          {"beta1", options.beta1},
          {"beta2", options.beta2},
          {"epsilon", options.epsilon},
          {"weight_decay", options.weight_decay}};
}

}  // namespace

Updated sgd(Var w, Var g, const UpdateOptions& options, Var scale) {
  return call_update("sgd", {w, g}, scale,
                     {{"lr", options.lr}, {"weight_decay", options.weight_decay}});
}

Updated momentum(Var w, Var g, Var m, const UpdateOptions& options, Var scale) {
  return call_update(
      "momentum", {w, g, m}, scale,
      {{"lr", options.lr}, {"momentum", options.momentum}, {"weight_decay", options.weight_decay}});
}

Updated adam(Var w, Var g, Var m, Var v, Var step, const UpdateOptions& options, Var scale) {
  return call_update("adam", {w, g, m, v, step}, scale, adam_attributes(options));
}

Updated adamw(Var w, Var g, Var m, Var v, Var step, const UpdateOptions& options, Var scale) {
  return call_update("adamw", {w, g, m, v, step}, scale, adam_attributes(options));
}

std::optional<std::int64_t> first_of_update(const AttributeReader& attributes) {
  if (attributes.op() == "adamw_group" || !attributes.has("first")) return std::nullopt;
  return attributes.integer("first");
}

Var increment(Var counter, std::int64_t by) {
  return counter.builder().call1("increment", {counter}, {{"by", by}});
}

std::vector<OpDefinition> update_definitions() {
  const auto adam_attributes = [](double decay) -> std::vector<AttributeSpec> {
    return {attribute::real("lr", 0), attribute::real("beta1", 0.9),
            attribute::real("beta2", 0.999), attribute::real("epsilon", 1e-8),
            attribute::real("weight_decay", decay)};
  };
  const auto of_parts = [](std::vector<AttributeSpec> specs) {
    specs.push_back(attribute::integer("first"));
    specs.push_back(attribute::text("of"));
    return specs;
  };
  return {
      update_definition("sgd", between(2, 3), {{0, 0}}, infer_update<0, false>, cost_per_element<5>,
                        evaluate_sgd)
          .having({attribute::real("lr", 0), attribute::real("weight_decay", 0)}),
      update_definition("momentum", between(3, 4), {{0, 0}, {1, 2}}, infer_update<1, false>,
                        moments_cost<7>, evaluate_momentum)
          .having(of_parts({attribute::real("lr", 0), attribute::real("weight_decay", 0),
                            attribute::real("momentum", 0.9)})),
      update_definition("adam", between(5, 6), {{0, 0}, {1, 2}, {2, 3}}, infer_update<2, true>,
                        moments_cost<16>, evaluate_adam<false>)
          .having(of_parts(adam_attributes(0))),
      update_definition("adamw", between(5, 6), {{0, 0}, {1, 2}, {2, 3}}, infer_update<2, true>,
                        moments_cost<16>, evaluate_adam<true>)
          .having(of_parts(adam_attributes(0.01))),
      update_definition("adamw_group", exactly(4 * kUpdateGroup + 1), group_pairs(),
                        infer_adamw_group, adamw_group_cost, evaluate_adamw_group)
          .having(adam_attributes(0.01)),
      update_definition("increment", exactly(1), {{0, 0}}, infer_increment, elementwise_cost,
                        evaluate_increment)
          .having({attribute::integer("by", 1)}),
      update_definition("accumulate", exactly(2), {{0, 0}}, infer_accumulate, elementwise_cost,
                        evaluate_accumulate),
  };
}

}  // namespace plimsoll::ops
