// Operators of com.microsoft that common exporters and optimisers emit.
#include <cmath>

#include "plimsoll/model/onnx/attention_blocks.h"
#include "plimsoll/model/onnx/building_blocks.h"
#include "plimsoll/model/onnx/operator_table.h"
#include "plimsoll/model/onnx/window_attributes.h"

namespace plimsoll::model::onnx {
namespace {

using ir::DType;

constexpr std::string_view kDomain = "com.microsoft";

// Gelu (exact), BiasGelu and FastGelu: the bias, where there is one, comes first.
Status gelu(OperatorCall& call) {
  Var x = call.in(0);
  if (call.has(1)) x = x + call.in(1);
  call.out(0, call.builder().call1("gelu", {x}, {{"approximate", std::string(call.target())}}));
  return {};
}

Status quick_gelu(OperatorCall& call) {
  const Var x = call.in(0);
  const double alpha = call.real("alpha", 1.702F);
  call.out(0, x * unary_call("sigmoid", x * alpha));
  return {};
}

Status fused_matmul(OperatorCall& call) {
  if (call.integer("transBatchA", 0) != 0 || call.integer("transBatchB", 0) != 0) return bad_input("transposed batches are not supported");
  Var y = call.builder().call1("matmul", {call.in(0), call.in(1)},
                               {{"trans_a", call.integer("transA", 0)}, {"trans_b", call.integer("transB", 0)}});
  const double alpha = call.real("alpha", 1);
  if (alpha != 1) y = y * alpha;
  call.out(0, y);
  return {};
}

Result<Var> activated(OperatorCall& call, Var x) {
  const std::string name = call.text("activation", "");
  if (name.empty()) return x;
  if (name == "Relu") return unary_call("relu", x);
  if (name == "Sigmoid") return unary_call("sigmoid", x);
  if (name == "Tanh") return unary_call("tanh", x);
  const auto* parameters = call.attribute("activation_params");
  const auto parameter = [&](std::size_t i) { return parameters != nullptr && i < parameters->floats.size() ? static_cast<double>(parameters->floats[i]) : 0.0; };
  Builder& builder = call.builder();
  if (name == "LeakyRelu") return builder.call1("leaky_relu", {x}, {{"alpha", parameter(0)}});
  if (name == "Clip") return builder.call1("clip", {x}, {{"min", parameter(0)}, {"max", parameter(1)}});
  if (name == "HardSigmoid") return builder.call1("hard_sigmoid", {x}, {{"alpha", parameter(0)}, {"beta", parameter(1)}});
  return bad_input("activation '{}' is not supported", name);
}

Status fused_conv(OperatorCall& call) {
  if (!call.has(0) || !call.has(1) || call.rank(1) < 3) return bad_input("its input or weight is missing");
  const ir::Ints kernel(call.shape(1).begin() + 2, call.shape(1).end());
  PLIMSOLL_TRY(const WindowAttributes window, window_attributes(call, call.shape(0), kernel));
  std::vector<Var> inputs{call.in(0), call.in(1)};
  if (call.has(2)) inputs.push_back(call.in(2));
  Var y = call.builder().call1("conv", inputs,
                               {{"strides", window.strides}, {"pads", window.pads}, {"dilations", window.dilations}, {"group", call.integer("group", 1)}});
  if (call.has(3)) y = y + call.in(3);
  PLIMSOLL_TRY(y, activated(call, y));
  call.out(0, y);
  return {};
}

// (x + skip + bias) normalised; the sum is the fourth output.
Status skip_layer_norm(OperatorCall& call) {
  if (!call.has(0) || !call.has(1) || !call.has(2)) return bad_input("an input is missing");
  const bool simple = call.target() == "rms_norm";
  Var sum = call.in(0) + call.in(1);
  const int bias = simple ? 3 : 4;
  if (call.has(bias)) sum = sum + call.in(bias);
  std::vector<Var> inputs{sum, call.in(2)};
  if (!simple && call.has(3)) inputs.push_back(call.in(3));
  call.out(0, call.builder().call1(call.target(), inputs, {{"epsilon", call.real("epsilon", 1e-12F)}}));
  call.out(3, sum);
  return {};
}

Status simplified_layer_norm(OperatorCall& call) {
  if (!call.has(0) || !call.has(1)) return bad_input("an input is missing");
  call.out(0, call.builder().call1("rms_norm", {call.in(0), call.in(1)},
                                   {{"axis", call.integer("axis", -1)}, {"epsilon", call.real("epsilon", 1e-5F)}}));
  return {};
}

Var heads_of(Var x, std::int64_t heads) {
  return transpose_by(reshape_to(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}

// A mask of padding [B, Sk] (1: seen) as numbers to add.
Result<Var> padding_mask(Var mask, Var q, std::int64_t keys, double hidden) {
  if (!mask) return mask;
  if (mask.rank() != 2 || mask.dim(1) != keys) return bad_input("a mask of {} is not supported", ir::to_string(mask.shape()));
  Builder& builder = q.builder();
  const Var seen = cast_to(mask, DType::kBool);
  const Var add = builder.call1("where", {seen, ops::number(q, 0), ops::number(q, hidden)});
  return reshape_to(add, {mask.dim(0), 1, 1, keys});
}

Result<Var> finish_attention(OperatorCall& call, Var q, Var k, Var v, std::int64_t heads, Var padding, Var bias, bool causal) {
  if (heads < 1 || q.rank() != 3 || k.rank() != 3 || v.rank() != 3 || q.dim(2) % heads != 0 || v.dim(2) % heads != 0) {
    return bad_input("its tensors do not divide into {} heads", heads);
  }
  const double hidden = call.real("mask_filter_value", -10000);
  AttentionParts parts{heads_of(q, heads), heads_of(k, heads), heads_of(v, heads), bias, call.real("scale", 0), 0};
  PLIMSOLL_TRY(const Var mask, padding_mask(padding, q, k.dim(1), hidden));
  if (mask) parts.mask = parts.mask ? parts.mask + mask : mask;
  PLIMSOLL_TRY(parts.mask, attention_mask(parts.mask, parts.q, parts.k, causal, 0));
  PLIMSOLL_TRY(const AttentionResults made, attend(parts));
  if (call.builder().error()) return q;
  const Var y = transpose_by(made.y, {0, 2, 1, 3});
  return reshape_to(y, {y.dim(0), y.dim(1), y.dim(2) * y.dim(3)});
}

Status packed_attention(OperatorCall& call) {
  if (call.has(4)) return bad_input("past keys are not supported");
  if (call.has_attribute("qkv_hidden_sizes")) return bad_input("qkv_hidden_sizes is not supported");
  Var qkv = call.builder().call1("linear", {call.in(0), call.in(1), call.maybe(2)});
  if (call.builder().error()) return {};
  const std::int64_t width = qkv.dim(2) / 3;
  PLIMSOLL_TRY(const Var y, finish_attention(call, slice_axis(qkv, 2, 0, width), slice_axis(qkv, 2, width, 2 * width),
                                             slice_axis(qkv, 2, 2 * width, 3 * width), call.integer("num_heads", 0), call.maybe(3),
                                             call.maybe(5), call.integer("unidirectional", 0) != 0));
  call.out(0, y);
  return {};
}

Status multi_head_attention(OperatorCall& call) {
  for (int i = 0; i < 3; ++i) {
    if (!call.has(i)) return bad_input("packed or missing q, k, v are not supported");
  }
  if (call.has(6) || call.has(7)) return bad_input("past keys are not supported");
  Var q = call.in(0);
  Var k = call.in(1);
  Var v = call.in(2);
  if (call.has(3)) {
    const Var bias = call.in(3);
    if (bias.rank() != 1 || q.rank() != 3 || k.rank() != 3 || v.rank() != 3) return bad_input("its bias does not fit");
    q = q + slice_axis(bias, 0, 0, q.dim(2));
    k = k + slice_axis(bias, 0, q.dim(2), q.dim(2) + k.dim(2));
    v = v + slice_axis(bias, 0, q.dim(2) + k.dim(2), bias.dim(0));
  }
  PLIMSOLL_TRY(const Var y, finish_attention(call, q, k, v, call.integer("num_heads", 0), call.maybe(4), call.maybe(5),
                                             call.integer("unidirectional", 0) != 0));
  call.out(0, y);
  return {};
}

}  // namespace

std::vector<Operator> contrib_operators() {
  return {
      {"Gelu", gelu, "none", true, kDomain}, {"BiasGelu", gelu, "none", true, kDomain},
      {"FastGelu", gelu, "tanh", true, kDomain}, {"QuickGelu", quick_gelu, {}, true, kDomain},
      {"FusedMatMul", fused_matmul, {}, true, kDomain}, {"FusedConv", fused_conv, {}, true, kDomain},
      {"SkipLayerNormalization", skip_layer_norm, "layer_norm", true, kDomain},
      {"SkipSimplifiedLayerNormalization", skip_layer_norm, "rms_norm", true, kDomain},
      {"SimplifiedLayerNormalization", simplified_layer_norm, {}, true, kDomain},
      // ONNX Runtime writes this one into ONNX's own domain.
      {"SimplifiedLayerNormalization", simplified_layer_norm},
      {"Attention", packed_attention, {}, true, kDomain}, {"MultiHeadAttention", multi_head_attention, {}, true, kDomain},
  };
}

}  // namespace plimsoll::model::onnx
