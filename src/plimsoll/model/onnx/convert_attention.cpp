// Attention and rotary embedding as ONNX has had them since operator set 23.
#include <cmath>

#include "plimsoll/model/onnx/attention_blocks.h"
#include "plimsoll/model/onnx/building_blocks.h"
#include "plimsoll/model/onnx/operator_table.h"

namespace plimsoll::model::onnx {
namespace {

using ir::DType;

// [B, S, H*D] as [B, H, S, D].
Var split_heads(Var x, std::int64_t heads) {
  return transpose_by(reshape_to(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}

Result<Var> heads_apart(Var x, std::int64_t heads, std::string_view what) {
  if (x.rank() == 4) return x;
  if (x.rank() != 3 || heads < 1 || x.dim(2) % heads != 0) {
    return bad_input("{} {} does not divide into {} heads", what, ir::to_string(x.shape()), heads);
  }
  return split_heads(x, heads);
}

Status attention(OperatorCall& call) {
  for (int i = 0; i < 3; ++i) {
    if (!call.has(i)) return bad_input("input {} is missing", i);
  }
  if (call.has(6)) return bad_input("nonpad_kv_seqlen is not supported");
  for (const AttributeFile& attribute : call.node().attributes) {
    if (attribute.name.find("window") != std::string_view::npos && attribute.i >= 0) {
      return bad_input("attribute '{}' is not supported", attribute.name);
    }
  }
  PLIMSOLL_TRY(const Var q, heads_apart(call.in(0), call.integer("q_num_heads", 0), "q"));
  PLIMSOLL_TRY(Var k, heads_apart(call.in(1), call.integer("kv_num_heads", 0), "k"));
  PLIMSOLL_TRY(Var v, heads_apart(call.in(2), call.integer("kv_num_heads", 0), "v"));
  std::int64_t past = 0;
  if (call.has(4) && call.has(5)) {
    past = call.shape(4).rank() == 4 ? call.shape(4)[2] : 0;
    k = concat_all({call.in(4), k}, 2);
    v = concat_all({call.in(5), v}, 2);
  }
  if (call.builder().error()) return {};
  AttentionParts parts{q, k, v, {}, call.real("scale", 0), call.real("softcap", 0)};
  PLIMSOLL_TRY(parts.mask, attention_mask(call.maybe(3), q, k, call.integer("is_causal", 0) != 0, past));
  const std::int64_t mode = call.integer("qk_matmul_output_mode", 0);
  PLIMSOLL_TRY(const AttentionResults made, attend(parts, call.wants(3) ? static_cast<int>(mode) : -1));
  Var y = made.y;
  if (call.rank(0) == 3) {
    y = transpose_by(y, {0, 2, 1, 3});
    y = reshape_to(y, {y.dim(0), y.dim(1), y.dim(2) * y.dim(3)});
  }
  call.out(0, y);
  call.out(1, k);
  call.out(2, v);
  call.out(3, made.scores);
  return {};
}

Status rotary_embedding(OperatorCall& call) {
  for (int i = 0; i < 3; ++i) {
    if (!call.has(i)) return bad_input("input {} is missing", i);
  }
  const bool flat = call.rank(0) == 3;
  PLIMSOLL_TRY(Var x, heads_apart(call.in(0), call.integer("num_heads", 0), "x"));
  if (x.rank() != 4) return bad_input("its input has rank {}, expects 3 or 4", x.rank());
  RotaryTables tables{call.in(1), call.in(2), call.maybe(3)};
  const std::int64_t width = call.integer("rotary_embedding_dim", 0);
  PLIMSOLL_TRY(Var y, rotate(x, tables, width == 0 ? x.dim(3) : width, call.integer("interleaved", 0) != 0));
  if (flat) {
    y = transpose_by(y, {0, 2, 1, 3});
    y = reshape_to(y, {y.dim(0), y.dim(1), y.dim(2) * y.dim(3)});
  }
  call.out(0, y);
  return {};
}

}  // namespace

std::vector<Operator> attention_operators() {
  return {{"Attention", attention}, {"RotaryEmbedding", rotary_embedding}};
}

}  // namespace plimsoll::model::onnx
