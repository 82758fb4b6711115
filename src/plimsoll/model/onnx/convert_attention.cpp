// Attention and rotary embedding as ONNX has had them since operator set 23.
#include <cmath>

#include "plimsoll/model/onnx/attention_blocks.h"
#include "plimsoll/model/onnx/building_blocks.h"
#include "plimsoll/model/onnx/operator_table.h"

namespace plimsoll::model::onnx {
namespace {

using ir::DType;

Status attention(OperatorCall& call) {
  for (int i = 0; i < 3; ++i) {
    if (!call.has(i)) return bad_input("input {} is missing", i);
  }
  PLIMSOLL_TRY(const Var q, heads_apart(call.in(0), call.integer("q_num_heads", 0), "q"));
  PLIMSOLL_TRY(Var k, heads_apart(call.in(1), call.integer("kv_num_heads", 0), "k"));
  PLIMSOLL_TRY(Var v, heads_apart(call.in(2), call.integer("kv_num_heads", 0), "v"));
  if (call.has(4) != call.has(5) || (call.has(4) && call.has(6))) return bad_input("past keys, past values and lengths do not go together");
  Visibility visible{call.integer("is_causal", 0) != 0, 0, call.maybe(6), call.integer("left_window_size", -1), call.integer("right_window_size", -1)};
  if (call.has(4)) {
    visible.before = call.rank(4) == 4 ? call.shape(4)[2] : 0;
    k = concat_all({call.in(4), k}, 2);
    v = concat_all({call.in(5), v}, 2);
  }
  if (call.builder().error()) return {};
  AttentionParts parts{q, k, v, {}, call.real("scale", 0), call.real("softcap", 0)};
  PLIMSOLL_TRY(parts.mask, attention_mask(call.maybe(3), q, k, visible));
  const std::int64_t mode = call.integer("qk_matmul_output_mode", 0);
  PLIMSOLL_TRY(const AttentionResults made, attend(parts, call.wants(3) ? static_cast<int>(mode) : -1));
  call.out(0, call.rank(0) == 3 ? heads_together(made.y) : made.y);
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
  PLIMSOLL_TRY(const Var y, rotate(x, tables, width == 0 ? x.dim(3) : width, call.integer("interleaved", 0) != 0));
  call.out(0, flat ? heads_together(y) : y);
  return {};
}

}  // namespace

std::vector<Operator> attention_operators() {
  return {{"Attention", attention}, {"RotaryEmbedding", rotary_embedding}};
}

}  // namespace plimsoll::model::onnx
