#include "plimsoll/ops/products/attention.h"

#include "plimsoll/ops/compose.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/expect.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/products/attention_sizes.h"
#include "plimsoll/ops/products/attention_unfused.h"

namespace plimsoll::ops {
namespace {

constexpr int kPairOperationsOfSoftmax = 5;

template <typename Result>
auto verified(Result sizes) {
  PLIMSOLL_CHECK(sizes.has_value(), "attention was not verified: {}", sizes.error().message);
  return *sizes;
}

Call call_of(const Evaluation& e) {
  std::vector<const TensorType*> types;
  for (const Array* input : e.inputs) types.push_back(input == nullptr ? nullptr : &input->type);
  return Call(std::move(types), e.attributes);
}

Call call_of(std::span<const Var> inputs, const AttributeReader& attributes) {
  std::vector<const TensorType*> types;
  for (const Var& input : inputs) types.push_back(input ? &input.type() : nullptr);
  return Call(std::move(types), attributes);
}

// A tensor [B,S,features], from this feature on.
Heads<const double> heads_of(const Array& array, std::int64_t from = 0) {
  const ir::Shape& shape = array.type.shape;
  return {array.reals.data() + from, shape[1] * shape[2], shape[2]};
}
Heads<double> heads_of(Array& array, std::int64_t from = 0) {
  const ir::Shape& shape = array.type.shape;
  return {array.reals.data() + from, shape[1] * shape[2], shape[2]};
}

const Array* optional(const Evaluation& e, int input) {
  return e.has(input) ? &e.in(input) : nullptr;
}

ir::Shape result_shape(const AttentionSizes& sizes) {
  return {sizes.batch, sizes.rows, sizes.heads * sizes.value_width};
}

std::vector<TensorType> result_types(const AttentionSizes& sizes, ir::DType dtype) {
  return {{dtype, result_shape(sizes), {}},
          {wide(dtype), {sizes.batch, sizes.heads, sizes.rows}, {}}};
}

// dy and y like the result, lse like the statistics.
Status expect_results(const Call& call, int dy, int y, int lse, const AttentionSizes& sizes,
                      ir::DType dtype) {
  const auto types = result_types(sizes, dtype);
  for (const int input : {dy, y, lse}) {
    const TensorType& type = types[input == lse ? 1 : 0];
    PLIMSOLL_RETURN_IF_ERROR(expect_type(call, input, type.dtype, type.shape));
  }
  return {};
}

// How the sizes of one form of attention are read, and the input they are read from on.
using ReadSizes = Result<AttentionSizes> (*)(const Call& call, int first);

template <ReadSizes read_sizes>
Cost forward_cost(const Call& call, std::span<const TensorType> outputs) {
  const AttentionSizes sizes = verified(read_sizes(call, 0));
  const double each = 2.0 * static_cast<double>(sizes.width + sizes.value_width);
  return cost_with(sizes.pairs() * (each + kPairOperationsOfSoftmax), call, outputs);
}

// Scores again, then dq, dk; dv and its counterpart against v.
template <ReadSizes read_sizes>
Cost backward_cost(const Call& call, std::span<const TensorType> outputs) {
  const AttentionSizes sizes = verified(read_sizes(call, 1));
  const double each =
      6.0 * static_cast<double>(sizes.width) + 4.0 * static_cast<double>(sizes.value_width);
  return cost_with(sizes.pairs() * (each + kPairOperationsOfSoftmax), call, outputs);
}

// attention(q, k, v, mask?) -> y, lse

Result<std::vector<TensorType>> infer_attention(const Call& call) {
  PLIMSOLL_TRY(const AttentionSizes sizes, attention_sizes(call, 0));
  PLIMSOLL_RETURN_IF_ERROR(expect_mask(call, 3, sizes, call.type(0).dtype));
  return result_types(sizes, call.type(0).dtype);
}

void evaluate_attention(const Evaluation& e) {
  attend(verified(attention_sizes(call_of(e), 0)),
         {heads_of(e.in(0)), heads_of(e.in(1)), heads_of(e.in(2)), optional(e, 3)},
         {heads_of(e.out(0)), e.out(1).reals.data()});
}

std::vector<Var> attention_gradient(const Backward& g) {
  const Var mask = g.inputs.size() > 3 ? g.in(3) : Var();
  std::vector<Var> out(g.inputs.size());
  if (g.dy(0)) {
    std::vector<Var> inputs{g.dy(0), g.in(0), g.in(1), g.in(2), g.out(0), g.out(1)};
    if (mask) inputs.push_back(mask);
    const auto adjoints = g.builder.call("attention_grad", std::move(inputs), g.attributes.given());
    std::copy(adjoints.begin(), adjoints.end(), out.begin());
  }
  if (g.dy(1)) {
    const UnfusedAttention unfused(verified(attention_sizes(call_of(g.inputs, g.attributes), 0)),
                                   g.in(0), g.in(1), g.in(2), mask);
    const auto [dq, dk] = unfused.lse_gradient(g.dy(1), g.out(1));
    out[0] = plus(out[0], dq);
    out[1] = plus(out[1], dk);
  }
  return out;
}

// attention_grad(dy, q, k, v, y, lse, mask?) -> dq, dk, dv

Result<std::vector<TensorType>> infer_attention_grad(const Call& call) {
  PLIMSOLL_TRY(const AttentionSizes sizes, attention_sizes(call, 1));
  PLIMSOLL_RETURN_IF_ERROR(expect_mask(call, 6, sizes, call.type(1).dtype));
  PLIMSOLL_RETURN_IF_ERROR(expect_results(call, 0, 4, 5, sizes, call.type(1).dtype));
  return std::vector<TensorType>{call.type(1), call.type(2), call.type(3)};
}

void evaluate_attention_grad(const Evaluation& e) {
  attend_backward(verified(attention_sizes(call_of(e), 1)),
                  {{heads_of(e.in(1)), heads_of(e.in(2)), heads_of(e.in(3)), optional(e, 6)},
                   heads_of(e.in(0)),
                   heads_of(e.in(4)),
                   e.in(5).reals.data()},
                  {heads_of(e.out(0)), heads_of(e.out(1)), heads_of(e.out(2))});
}

std::vector<Var> decompose_attention_grad(const Decomposition& d) {
  const Var mask = d.inputs.size() > 6 ? d.in(6) : Var();
  const UnfusedAttention unfused(verified(attention_sizes(call_of(d.inputs, d.attributes), 1)),
                                 d.in(1), d.in(2), d.in(3), mask);
  const auto [dq, dk, dv] = unfused.gradient(d.in(0), d.in(4), d.in(5));
  return {dq, dk, dv};
}

// attention_qkv(qkv, mask?) -> y, lse

Result<std::vector<TensorType>> infer_qkv(const Call& call) {
  PLIMSOLL_TRY(const AttentionSizes sizes, attention_qkv_sizes(call, 0));
  PLIMSOLL_RETURN_IF_ERROR(expect_mask(call, 1, sizes, call.type(0).dtype));
  return result_types(sizes, call.type(0).dtype);
}

AttentionInputs side_by_side(const AttentionSizes& sizes, const Array& qkv, const Array* mask) {
  const std::int64_t third = sizes.heads * sizes.width;
  return {heads_of(qkv), heads_of(qkv, third), heads_of(qkv, 2 * third), mask};
}

void evaluate_qkv(const Evaluation& e) {
  const AttentionSizes sizes = verified(attention_qkv_sizes(call_of(e), 0));
  attend(sizes, side_by_side(sizes, e.in(0), optional(e, 1)),
         {heads_of(e.out(0)), e.out(1).reals.data()});
}

struct Thirds {
  Var q, k, v;
};
Thirds thirds_of(Var qkv) {
  const std::int64_t third = qkv.dim(2) / 3;
  return {slice(qkv, 2, 0, third), slice(qkv, 2, third, 2 * third),
          slice(qkv, 2, 2 * third, 3 * third)};
}

std::vector<Var> qkv_gradient(const Backward& g) {
  const Var mask = g.inputs.size() > 1 ? g.in(1) : Var();
  std::vector<Var> out(g.inputs.size());
  if (g.dy(0)) {
    std::vector<Var> inputs{g.dy(0), g.in(0), g.out(0), g.out(1)};
    if (mask) inputs.push_back(mask);
    out[0] = g.builder.call1("attention_qkv_grad", std::move(inputs), g.attributes.given());
  }
  if (g.dy(1)) {
    const auto [q, k, v] = thirds_of(g.in(0));
    const UnfusedAttention unfused(
        verified(attention_qkv_sizes(call_of(g.inputs, g.attributes), 0)), q, k, v, mask);
    const auto [dq, dk] = unfused.lse_gradient(g.dy(1), g.out(1));
    out[0] = plus(out[0], concat({dq, dk, g.builder.fill(v.type(), 0)}, 2));
  }
  return out;
}

// attention_qkv_grad(dy, qkv, y, lse, mask?) -> dqkv

Result<std::vector<TensorType>> infer_qkv_grad(const Call& call) {
  PLIMSOLL_TRY(const AttentionSizes sizes, attention_qkv_sizes(call, 1));
  PLIMSOLL_RETURN_IF_ERROR(expect_mask(call, 4, sizes, call.type(1).dtype));
  PLIMSOLL_RETURN_IF_ERROR(expect_results(call, 0, 2, 3, sizes, call.type(1).dtype));
  return std::vector{call.type(1)};
}

void evaluate_qkv_grad(const Evaluation& e) {
  const AttentionSizes sizes = verified(attention_qkv_sizes(call_of(e), 1));
  const std::int64_t third = sizes.heads * sizes.width;
  attend_backward(sizes,
                  {side_by_side(sizes, e.in(1), optional(e, 4)), heads_of(e.in(0)),
                   heads_of(e.in(2)), e.in(3).reals.data()},
                  {heads_of(e.out()), heads_of(e.out(), third), heads_of(e.out(), 2 * third)});
}

std::vector<Var> decompose_qkv_grad(const Decomposition& d) {
  const auto [q, k, v] = thirds_of(d.in(1));
  std::vector<Var> inputs{d.in(0), q, k, v, d.in(2), d.in(3)};
  if (d.inputs.size() > 4 && d.in(4)) inputs.push_back(d.in(4));
  return {concat(d.builder.call("attention_grad", std::move(inputs), d.attributes.given()), 2)};
}

// By batch; a mask that all batches share is taken whole.
template <int kMask>
std::optional<Split> split_attention(const Call& call, std::span<const TensorType> outputs) {
  const std::int64_t batch = call.shape(0)[0];
  Split out;
  out.rows = batch;
  for (int i = 0; i < call.size(); ++i) {
    const bool shared = i == kMask && (!call.has(i) || call.shape(i).rank() < 4 ||
                                       call.shape(i)[0] != batch || batch == 1);
    out.inputs.push_back(shared ? Split::Input::kWhole : Split::Input::kCut);
  }
  out.outputs.assign(outputs.size(), Split::Output::kCut);
  return out;
}

OpDefinition attention_definition(std::string_view name, Arity inputs, int outputs, InferRule infer,
                                  Gradient gradient, CostRule cost, EvaluateRule evaluate,
                                  DecomposeRule decompose, SplitRule split) {
  return {.name = name,
          .inputs = inputs,
          .outputs = exactly(outputs),
          .attributes = {attribute::integer("heads", 1), attribute::integer("kv_heads"),
                         attribute::real("scale"), attribute::integer("causal", 0)},
          .infer = infer,
          .gradient = gradient,
          .in_place = InPlace::never(),
          .cost = cost,
          .recompute = Recompute::kExpensive,
          .layout = LayoutRule::kPlain,
          .evaluate = evaluate,
          .decompose = decompose,
          .split = split};
}

ir::Attributes attributes_of(const AttentionOptions& options) {
  ir::Attributes out{{"heads", options.heads}};
  if (options.kv_heads != 0 && options.kv_heads != options.heads)
    out.set("kv_heads", options.kv_heads);
  if (options.scale != 0) out.set("scale", options.scale);
  if (options.causal) out.set("causal", std::int64_t{1});
  return out;
}

}  // namespace

Attention attention(Var q, Var k, Var v, const AttentionOptions& options, Var mask) {
  std::vector<Var> inputs{q, k, v};
  if (mask) inputs.push_back(mask);
  const auto out = q.builder().call("attention", std::move(inputs), attributes_of(options));
  return {out[0], out[1]};
}

Attention attention_qkv(Var qkv, const AttentionOptions& options, Var mask) {
  std::vector<Var> inputs{qkv};
  if (mask) inputs.push_back(mask);
  const auto out = qkv.builder().call("attention_qkv", std::move(inputs), attributes_of(options));
  return {out[0], out[1]};
}

std::vector<OpDefinition> attention_definitions() {
  return {
      attention_definition("attention", between(3, 4), 2, infer_attention,
                           Gradient(attention_gradient), forward_cost<attention_sizes>,
                           evaluate_attention, nullptr, split_attention<3>),
      attention_definition("attention_grad", between(6, 7), 3, infer_attention_grad,
                           Gradient::of_decomposition(), backward_cost<attention_sizes>,
                           evaluate_attention_grad, decompose_attention_grad, split_attention<6>),
      attention_definition("attention_qkv", between(1, 2), 2, infer_qkv, Gradient(qkv_gradient),
                           forward_cost<attention_qkv_sizes>, evaluate_qkv, nullptr,
                           split_attention<1>),
      attention_definition("attention_qkv_grad", between(4, 5), 1, infer_qkv_grad,
                           Gradient::of_decomposition(), backward_cost<attention_qkv_sizes>,
                           evaluate_qkv_grad, decompose_qkv_grad, split_attention<4>),
  };
}

}  // namespace plimsoll::ops
