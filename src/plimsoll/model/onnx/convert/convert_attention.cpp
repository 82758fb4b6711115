// Attention and rotary embedding as ONNX has had them since operator set 23.
#include <cmath>

#include "plimsoll/model/onnx/convert/attention_blocks.h"
#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"

namespace plimsoll::model::onnx {
namespace {

using ir::DType;

Status attention(OperatorCall& call) {
  PLIMSOLL_RETURN_IF_ERROR(call.need({0, 1, 2}));
  PLIMSOLL_TRY(const Var q, heads_apart(call.in(0), call.integer("q_num_heads", 0), "q"));
  PLIMSOLL_TRY(Var k, heads_apart(call.in(1), call.integer("kv_num_heads", 0), "k"));
  PLIMSOLL_TRY(Var v, heads_apart(call.in(2), call.integer("kv_num_heads", 0), "v"));
  if (call.has(4) != call.has(5) || (call.has(4) && call.has(6)))
    return bad_input("past keys, past values and lengths do not go together");
  Visibility visible{call.integer("is_causal", 0) != 0, 0, call.maybe(6),
                     call.integer("left_window_size", -1), call.integer("right_window_size", -1)};
  if (call.has(4)) {
    visible.before = call.rank(4) == 4 ? call.shape(4)[2] : 0;
    k = concat_all({call.in(4), k}, 2);
    v = concat_all({call.in(5), v}, 2);
  }
  if (call.builder().error()) return {};
  AttentionParts parts{q, k, v, {}, call.real("scale", 0), call.real("softcap", 0)};
  PLIMSOLL_TRY(parts.mask, attention_mask(call.maybe(3), q, k, visible));
  const std::int64_t mode = call.integer("qk_matmul_output_mode", 0);
  PLIMSOLL_TRY(const AttentionResults made,
               attend(parts, call.wants(3) ? static_cast<int>(mode) : -1));
  call.out(0, call.rank(0) == 3 ? heads_together(made.y) : made.y);
  call.out(1, k);
  call.out(2, v);
  call.out(3, made.scores);
  return {};
}

// A subgraph from a tensor to one of the same type; absent: the tensor itself.
Result<Var> modified(OperatorCall& call, std::string_view name, Var x) {
  const AttributeFile* attribute = call.attribute(name);
  if (attribute == nullptr || call.builder().error()) return x;
  if (!attribute->has_g) return bad_input("its {} is no graph", name);
  PLIMSOLL_TRY(GraphFile read, read_graph(attribute->g));
  const GraphFile& body = call.importer().keep(std::move(read));
  const TensorId given =
      call.importer().add({.name = std::string(name), .type = x.type(), .var = x});
  PLIMSOLL_TRY(const auto made, call.importer().inline_graph(body, {given}, call.scope()));
  if (made.size() != 1) return bad_input("its {} makes {} outputs", name, made.size());
  PLIMSOLL_TRY(const Var y, call.importer().in_graph(made.front()));
  if (y.type() != x.type())
    return bad_input("its {} makes {} of {}", name, ir::to_string(y.type()),
                     ir::to_string(x.type()));
  return y;
}

// Each head of keys or values for all query heads that share it.
Var shared_heads(Var x, std::int64_t group) {
  if (group == 1) return x;
  const Var apart = reshape_to(x, {x.dim(0), x.dim(1), 1, x.dim(2), x.dim(3)});
  const Var all = expand_to(apart, {x.dim(0), x.dim(1), group, x.dim(2), x.dim(3)});
  return reshape_to(all, {x.dim(0), x.dim(1) * group, x.dim(2), x.dim(3)});
}

Status flex_attention(OperatorCall& call) {
  for (int i = 0; i < 3; ++i) {
    if (!call.has(i) || call.rank(i) != 4) return bad_input("input {} is not of rank 4", i);
  }
  const Var q = call.in(0);
  if (call.shape(1)[1] < 1 || q.dim(1) % call.shape(1)[1] != 0)
    return bad_input("{} query heads do not share {} of keys", q.dim(1), call.shape(1)[1]);
  const double scale = call.real(
      "scale",
      static_cast<float>(1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(q.dim(3), 1)))));
  if (!call.has_attribute("score_mod") && !call.has_attribute("prob_mod")) {
    PLIMSOLL_TRY(const AttentionResults made, attend({q, call.in(1), call.in(2), {}, scale, 0}));
    return call.done(made.y);
  }
  const std::int64_t group = q.dim(1) / call.shape(1)[1];
  const Var k = shared_heads(call.in(1), group);
  const Var v = shared_heads(call.in(2), group);
  const ElementType usual = q.dtype() == DType::kF64 ? ElementType::kDouble : ElementType::kFloat;
  PLIMSOLL_TRY(const DType precision, call.attribute_dtype("softmax_precision", usual));
  Builder& builder = call.builder();
  Var scores = builder.call1("matmul", {q, k}, {{"trans_b", std::int64_t{1}}});
  if (builder.error()) return {};
  PLIMSOLL_TRY(scores, modified(call, "score_mod", cast_to(scores * scale, precision)));
  scores = builder.call1("softmax", {scores}, {{"axis", std::int64_t{-1}}});
  PLIMSOLL_TRY(scores, modified(call, "prob_mod", scores));
  return call.done(builder.call1("matmul", {cast_to(scores, v.dtype()), v}));
}

Status rotary_embedding(OperatorCall& call) {
  PLIMSOLL_RETURN_IF_ERROR(call.need({0, 1, 2}));
  const bool flat = call.rank(0) == 3;
  PLIMSOLL_TRY(Var x, heads_apart(call.in(0), call.integer("num_heads", 0), "x"));
  if (x.rank() != 4) return bad_input("its input has rank {}, expects 3 or 4", x.rank());
  RotaryTables tables{call.in(1), call.in(2), call.maybe(3)};
  const std::int64_t width = call.integer("rotary_embedding_dim", 0);
  PLIMSOLL_TRY(const Var y, rotate(x, tables, width == 0 ? x.dim(3) : width,
                                   call.integer("interleaved", 0) != 0));
  return call.done(flat ? heads_together(y) : y);
}

}  // namespace

std::vector<Operator> attention_operators() {
  return {{"Attention", attention,
           "is_causal kv_num_heads left_window_size q_num_heads qk_matmul_output_mode "
           "right_window_size scale softcap softmax_precision"},
          {"RotaryEmbedding", rotary_embedding, "interleaved num_heads rotary_embedding_dim"},
          {"FlexAttention",
           flex_attention,
           "prob_mod scale score_mod softmax_precision",
           {},
           false,
           "ai.onnx.preview"}};
}

}  // namespace plimsoll::model::onnx
