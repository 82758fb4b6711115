// Operators of com.microsoft that common exporters and optimisers emit.
#include <cmath>

#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"
#include "plimsoll/model/onnx/convert/window_attributes.h"

namespace plimsoll::model::onnx {
namespace {

using ir::DType;

// Gelu (exact), BiasGelu and FastGelu: the bias, where there is one, comes first.
Status contrib_gelu(OperatorCall& call) {
  Var x = call.in(0);
  if (call.has(1)) x = x + call.in(1);
  return call.done(
      call.builder().call1("gelu", {x}, {{"approximate", std::string(call.target())}}));
}

Status quick_gelu(OperatorCall& call) {
  const Var x = call.in(0);
  const double alpha = call.real("alpha", 1.702F);
  return call.done(x * unary_call("sigmoid", x * alpha));
}

Status fused_matmul(OperatorCall& call) {
  // Some optimisers leave the batch between rows and columns: [M, batch..., K].
  const auto operand = [&](int i, std::string_view flag) {
    const Var x = call.in(i);
    if (call.integer(flag, 0) == 0 || x.rank() < 3) return x;
    ir::Ints perm = range(1, x.rank() - 1);
    perm.push_back(0);
    perm.push_back(x.rank() - 1);
    return transpose_by(x, perm);
  };
  Var y = call.builder().call1(
      "matmul", {operand(0, "transBatchA"), operand(1, "transBatchB")},
      {{"trans_a", call.integer("transA", 0)}, {"trans_b", call.integer("transB", 0)}});
  const double alpha = call.real("alpha", 1);
  if (alpha != 1) y = y * alpha;
  return call.done(y);
}

Result<Var> activated(OperatorCall& call, Var x) {
  const std::string name = call.text("activation", "");
  if (name.empty()) return x;
  if (name == "Relu") return unary_call("relu", x);
  if (name == "Sigmoid") return unary_call("sigmoid", x);
  if (name == "Tanh") return unary_call("tanh", x);
  const auto* parameters = call.attribute("activation_params");
  const auto parameter = [&](std::size_t i) {
    return parameters != nullptr && i < parameters->floats.size()
               ? static_cast<double>(parameters->floats[i])
               : 0.0;
  };
  Builder& builder = call.builder();
  if (name == "LeakyRelu") return builder.call1("leaky_relu", {x}, {{"alpha", parameter(0)}});
  if (name == "Clip")
    return builder.call1("clip", {x}, {{"min", parameter(0)}, {"max", parameter(1)}});
  if (name == "HardSigmoid")
    return builder.call1("hard_sigmoid", {x}, {{"alpha", parameter(0)}, {"beta", parameter(1)}});
  return bad_input("activation '{}' is not supported", name);
}

Status fused_conv(OperatorCall& call) {
  if (!call.has(0) || !call.has(1) || call.rank(1) < 3)
    return bad_input("its input or weight is missing");
  const ir::Ints kernel(call.shape(1).begin() + 2, call.shape(1).end());
  PLIMSOLL_TRY(const WindowAttributes window, window_attributes(call, call.shape(0), kernel));
  Var y = convolved(call, window);
  if (call.has(3)) y = y + call.in(3);
  PLIMSOLL_TRY(y, activated(call, y));
  return call.done(y);
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
  call.out(
      0, call.builder().call1(call.target(), inputs, {{"epsilon", call.real("epsilon", 1e-12F)}}));
  call.out(3, sum);
  return {};
}

Status simplified_layer_norm(OperatorCall& call) {
  if (!call.has(0) || !call.has(1)) return bad_input("an input is missing");
  return call.done(call.builder().call1(
      "rms_norm", {call.in(0), call.in(1)},
      {{"axis", call.integer("axis", -1)}, {"epsilon", call.real("epsilon", 1e-5F)}}));
}

Status inner_norm(OperatorCall& call) {
  if (!call.has(0) || !call.has(1)) return bad_input("an input is missing");
  std::vector<Var> inputs{call.in(0), call.in(1)};
  if (call.has(2)) inputs.push_back(call.in(2));
  return call.done(call.builder().call1(
      "layer_norm", inputs,
      {{"axis", call.integer("axis", -1)}, {"epsilon", call.real("epsilon", 1e-5F)}}));
}

Var embedded(OperatorCall& call, int table, Var ids) {
  return call.builder().call1("gather", {call.in(table), ids}, {{"axis", std::int64_t{0}}});
}

// The sum of word, position and segment embeddings, normalised. Without positions a row has 0, 1,
// 2, ...
Status embed_layer_norm(OperatorCall& call) {
  PLIMSOLL_RETURN_IF_ERROR(call.need({0, 2, 3, 5, 6}));
  if (call.rank(0) != 2) return bad_input("its ids have rank {}, expects 2", call.rank(0));
  Builder& builder = call.builder();
  const Var ids = call.in(0);
  const Var places = call.has(8) ? call.in(8) : counted(builder, {1, ids.dim(1)}, 1);
  Var sum = embedded(call, 2, ids) + embedded(call, 3, places);
  if (call.has(1) && call.has(4)) sum = sum + embedded(call, 4, call.in(1));
  call.out(0, builder.call1("layer_norm", {sum, call.in(5), call.in(6)},
                            {{"epsilon", call.real("epsilon", 1e-12F)}}));
  if (call.has(7))
    call.out(1, builder.call1("reduce_sum", {cast_to(call.in(7), DType::kI32)},
                              {{"axes", ir::Ints{1}}}));
  call.out(2, sum);
  return {};
}

Status bias_add(OperatorCall& call) {
  PLIMSOLL_RETURN_IF_ERROR(call.need({0, 1, 2}));
  return call.done(call.in(0) + call.in(1) + call.in(2));
}

// Half of the channels times the GELU of the other half.
Status bias_split_gelu(OperatorCall& call) {
  if (!call.has(0) || !call.has(1) || call.rank(0) < 1) return bad_input("an input is missing");
  const Var x = call.in(0) + call.in(1);
  if (call.builder().error()) return {};
  const int last = x.rank() - 1;
  const std::int64_t half = x.dim(last) / 2;
  return call.done(slice_axis(x, last, 0, half) *
                   call.builder().call1("gelu", {slice_axis(x, last, half, 2 * half)}));
}

Status fused_gemm(OperatorCall& call) {
  if (!call.has(0) || !call.has(1) || call.rank(0) != 2 || call.rank(1) != 2)
    return bad_input("its factors are not of rank 2");
  Builder& builder = call.builder();
  Var y = builder.call1(
      "matmul", {call.in(0), call.in(1)},
      {{"trans_a", call.integer("transA", 0)}, {"trans_b", call.integer("transB", 0)}});
  if (const double alpha = call.real("alpha", 1); alpha != 1) y = y * alpha;
  if (call.has(2)) {
    const double beta = call.real("beta", 1);
    y = y + (beta == 1 ? call.in(2) : call.in(2) * beta);
  }
  const std::string name = call.text("activation", "");
  if (name == "LeakyRelu") {
    y = builder.call1("leaky_relu", {y}, {{"alpha", call.real("activation_alpha", 0.01F)}});
  } else {
    PLIMSOLL_TRY(y, activated(call, y));
  }
  return call.done(y);
}

// Group norm with the channels last, as diffusion models' optimiser writes it.
Status contrib_group_norm(OperatorCall& call) {
  if (!call.has(0) || !call.has(1) || !call.has(2) || call.rank(0) != 4)
    return bad_input("its inputs are missing or not of rank 4");
  const bool last = call.integer("channels_last", 1) != 0;
  const Var x = last ? transpose_by(call.in(0), {0, 3, 1, 2}) : call.in(0);
  Var y = call.builder().call1(
      "group_norm", {x, cast_to(call.in(1), x.dtype()), cast_to(call.in(2), x.dtype())},
      {{"groups", call.integer("groups", 1)}, {"epsilon", call.real("epsilon", 1e-5F)}});
  if (call.integer("activation", 0) != 0) y = unary_call("silu", y);
  return call.done(last ? transpose_by(y, {0, 2, 3, 1}) : y);
}

}  // namespace

std::vector<Operator> contrib_operators() {
  std::vector<Operator> out = in_domain(
      "com.microsoft",
      {
          {"Gelu", contrib_gelu, {}, "none"},
          {"BiasGelu", contrib_gelu, {}, "none"},
          {"FastGelu", contrib_gelu, {}, "tanh"},
          {"QuickGelu", quick_gelu, "alpha"},
          {"FusedMatMul", fused_matmul, "alpha transA transB transBatchA transBatchB"},
          {"FusedConv", fused_conv,
           "activation activation_params auto_pad dilations group kernel_shape pads strides"},
          {"SkipLayerNormalization", skip_layer_norm, "epsilon", "layer_norm"},
          {"SkipSimplifiedLayerNormalization", skip_layer_norm, "epsilon", "rms_norm"},
          {"SimplifiedLayerNormalization", simplified_layer_norm, "axis epsilon stash_type"},
          {"LayerNormalization", inner_norm, "axis epsilon stash_type"},
          {"EmbedLayerNormalization", embed_layer_norm, "epsilon mask_index_type"},
          {"BiasAdd", bias_add},
          {"BiasSplitGelu", bias_split_gelu},
          {"FusedGemm", fused_gemm,
           "activation activation_alpha activation_beta activation_gamma alpha beta transA transB"},
          {"GroupNorm", contrib_group_norm, "activation channels_last epsilon groups"},
      });
  // ONNX Runtime writes this one into ONNX's own domain.
  out.push_back({"SimplifiedLayerNormalization", simplified_layer_norm, "axis epsilon stash_type"});
  return out;
}

}  // namespace plimsoll::model::onnx
