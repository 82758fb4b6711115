// Attention in the forms of com.microsoft, as ONNX Runtime's optimiser and model builder write it.
#include <cmath>

#include "plimsoll/model/onnx/convert/attention_blocks.h"
#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"

namespace plimsoll::model::onnx {
namespace {

using ir::DType;

// A mask of padding over the keys [B, Sk], or [B, Sq, Sk] (1: seen), as numbers to add; one of the
// keys' counts [B].
Result<Var> padding_mask(Var mask, Var q, std::int64_t keys, double hidden) {
  if (!mask) return mask;
  Builder& builder = q.builder();
  if (mask.rank() == 1 && mask.dim(0) == q.dim(0)) {
    const Var key = counted(builder, {1, keys}, 1);
    mask = builder.call1("less", {key, reshape_to(cast_to(mask, DType::kI64), {q.dim(0), 1})});
  }
  if (mask.rank() < 2 || mask.rank() > 3 || mask.dim(-1) != keys)
    return bad_input("a mask of {} is not supported", ir::to_string(mask.shape()));
  const Var add = builder.call1(
      "where", {cast_to(mask, DType::kBool), ops::number(q, 0), ops::number(q, hidden)});
  return reshape_to(add, {mask.dim(0), 1, mask.rank() == 3 ? mask.dim(1) : 1, keys});
}

struct Heads {
  Var q, k, v;  // [B, heads, S, D]
  std::int64_t past = 0;
};

// Puts earlier keys and values in front.
Status add_past(Heads& heads, Var past_k, Var past_v) {
  if (past_k.rank() != 4 || past_v.rank() != 4)
    return bad_input("past keys and values are not of rank 4");
  heads.past = past_k.dim(2);
  if (heads.past == 0) return {};
  heads.k = concat_all({past_k, heads.k}, 2);
  heads.v = concat_all({past_v, heads.v}, 2);
  return {};
}

Status finish(OperatorCall& call, const Heads& heads, Var padding, Var bias) {
  if (call.builder().error()) return {};
  const double hidden = call.real("mask_filter_value", -10000);
  AttentionParts parts{heads.q, heads.k, heads.v, bias, call.real("scale", 0), 0};
  PLIMSOLL_TRY(const Var mask, padding_mask(padding, heads.q, heads.k.dim(2), hidden));
  if (mask) parts.mask = parts.mask ? parts.mask + mask : mask;
  const Visibility visible{call.integer("unidirectional", 0) != 0, heads.past};
  PLIMSOLL_TRY(parts.mask, attention_mask(parts.mask, parts.q, parts.k, visible));
  PLIMSOLL_TRY(const AttentionResults made, attend(parts));
  return call.done(heads_together(made.y));
}

// One product makes q, k and v side by side. Past and present hold keys and values in one tensor
// [2, B, H, S, D].
Status packed_attention(OperatorCall& call) {
  if (!call.has(0) || !call.has(1)) return bad_input("its input or weight is missing");
  if (call.has(6) || call.integer("do_rotary", 0) != 0 ||
      call.integer("past_present_share_buffer", 0) != 0) {
    return bad_input("shared buffers and rotation inside attention are not supported");
  }
  const Var qkv = call.builder().call1("linear", {call.in(0), call.in(1), call.maybe(2)});
  if (call.builder().error()) return {};
  if (qkv.rank() != 3) return bad_input("its input has rank {}, expects 3", qkv.rank());
  const ir::Ints sizes = call.integers("qkv_hidden_sizes", ir::Ints(3, qkv.dim(2) / 3));
  if (sizes.size() != 3 || sizes[0] < 1 || sizes[0] != sizes[1] || sizes[2] < 1 ||
      sizes[0] + sizes[1] + sizes[2] != qkv.dim(2)) {
    return bad_input("qkv_hidden_sizes do not fit the weight");
  }
  const std::int64_t count = call.integer("num_heads", 0);
  Heads heads;
  PLIMSOLL_TRY(heads.q, heads_apart(slice_axis(qkv, 2, 0, sizes[0]), count, "q"));
  PLIMSOLL_TRY(heads.k, heads_apart(slice_axis(qkv, 2, sizes[0], sizes[0] + sizes[1]), count, "k"));
  PLIMSOLL_TRY(heads.v,
               heads_apart(slice_axis(qkv, 2, sizes[0] + sizes[1], qkv.dim(2)), count, "v"));
  if (call.has(4)) {
    if (call.rank(4) != 5 || call.shape(4)[0] != 2)
      return bad_input("its past {} does not hold keys and values", ir::to_string(call.shape(4)));
    PLIMSOLL_RETURN_IF_ERROR(add_past(heads, select(call.in(4), 0, 0), select(call.in(4), 0, 1)));
  }
  if (call.wants(1) && !call.builder().error()) {
    const auto pair = [](Var x) {
      return reshape_to(x, {1, x.dim(0), x.dim(1), x.dim(2), x.dim(3)});
    };
    call.out(1, concat_all({pair(heads.k), pair(heads.v)}, 0));
  }
  return finish(call, heads, call.maybe(3), call.maybe(5));
}

Status multi_head_attention(OperatorCall& call) {
  if (!call.has(0) || call.has(1) != call.has(2))
    return bad_input("a query, a key or a value is missing");
  if (call.has(8) || call.has(9)) return bad_input("shared buffers are not supported");
  const std::int64_t count = call.integer("num_heads", 0);
  Var q = call.in(0);
  Var k;
  Var v;
  if (call.has(1)) {
    k = call.in(1);
    v = call.in(2);
  } else {
    // Packed as [B, S, heads, 3, D].
    if (q.rank() != 5 || q.dim(3) != 3 || call.has(3))
      return bad_input("a packed query {} is not supported", ir::to_string(q.shape()));
    const auto part = [&](std::int64_t i) {
      return reshape_to(select(call.in(0), 3, i), {q.dim(0), q.dim(1), q.dim(2) * q.dim(4)});
    };
    k = part(1);
    v = part(2);
    q = part(0);
  }
  if (call.has(3)) {
    const Var bias = call.in(3);
    if (bias.rank() != 1 || q.rank() != 3 || k.rank() != 3 || v.rank() != 3)
      return bad_input("its bias does not fit");
    q = q + slice_axis(bias, 0, 0, q.dim(2));
    k = k + slice_axis(bias, 0, q.dim(2), q.dim(2) + k.dim(2));
    v = v + slice_axis(bias, 0, q.dim(2) + k.dim(2), bias.dim(0));
  }
  Heads heads;
  PLIMSOLL_TRY(heads.q, heads_apart(q, count, "q"));
  PLIMSOLL_TRY(heads.k, heads_apart(k, count, "k"));
  PLIMSOLL_TRY(heads.v, heads_apart(v, count, "v"));
  if (call.has(6) && call.has(7)) PLIMSOLL_RETURN_IF_ERROR(add_past(heads, call.in(6), call.in(7)));
  call.out(1, heads.k);
  call.out(2, heads.v);
  return finish(call, heads, call.maybe(4), call.maybe(5));
}

// Positions [B, S] from `start` on.
Var positions_from(Var like, Var start) {
  const Var count = counted(like.builder(), {like.dim(0), like.dim(2)}, 1);
  return start ? count + start : count;
}

Status contrib_rotary(OperatorCall& call) {
  PLIMSOLL_RETURN_IF_ERROR(call.need({0, 1, 2, 3}));
  if (call.integer("is_packed_batching", 0) != 0 || call.real("scale", 1) != 1)
    return bad_input("packed batches and scales are not supported");
  const Var cos = call.in(2);
  if (cos.rank() != 2) return bad_input("its tables have rank {}, expects 2", cos.rank());
  const std::int64_t width = call.integer("rotary_embedding_dim", 0);
  std::int64_t heads = call.integer("num_heads", 0);
  // Without a number of heads each is as wide as the tables say.
  if (heads == 0 && call.rank(0) == 3 && cos.dim(1) > 0)
    heads = call.shape(0)[2] / (2 * cos.dim(1));
  PLIMSOLL_TRY(const Var x, heads_apart(call.in(0), heads, "x"));
  if (x.rank() != 4) return bad_input("its input has rank {}, expects 3 or 4", x.rank());
  Var positions = cast_to(call.in(1), DType::kI64);
  if (positions.rank() < 2) positions = positions_from(x, reshape_to(positions, {1, 1}));
  PLIMSOLL_TRY(const Var y, rotate(x, {cos, call.in(3), positions},
                                   width == 0 ? std::min(2 * cos.dim(1), x.dim(3)) : width,
                                   call.integer("interleaved", 0) != 0));
  return call.done(call.rank(0) == 3 ? heads_together(y) : y);
}

// Query, key and value of grouped heads, apart or side by side in the query.
Result<Heads> grouped_heads(OperatorCall& call, std::int64_t own, std::int64_t shared) {
  if (own < 1 || shared < 1) return bad_input("{} heads over {} make no sense", own, shared);
  Heads heads;
  if (call.has(1) && call.has(2)) {
    PLIMSOLL_TRY(heads.q, heads_apart(call.in(0), own, "q"));
    PLIMSOLL_TRY(heads.k, heads_apart(call.in(1), shared, "k"));
    PLIMSOLL_TRY(heads.v, heads_apart(call.in(2), shared, "v"));
    return heads;
  }
  PLIMSOLL_TRY(const Var all, heads_apart(call.in(0), own + 2 * shared, "q"));
  heads.q = slice_axis(all, 1, 0, own);
  heads.k = slice_axis(all, 1, own, own + shared);
  heads.v = slice_axis(all, 1, own + shared, own + 2 * shared);
  return heads;
}

// seqlens_k counts each sequence's keys less one. Where there are keys of earlier calls, all
// sequences are taken to be full, as there is one length for the past.
Status group_query_attention(OperatorCall& call) {
  if (!call.has(0) || !call.has(5)) return bad_input("its query or seqlens_k is missing");
  if (call.integer("smooth_softmax", 0) > 0 || call.has(11) || call.has(10))
    return bad_input("a smooth softmax, sinks and biases are not supported");
  PLIMSOLL_TRY(Heads heads,
               grouped_heads(call, call.integer("num_heads", 0), call.integer("kv_num_heads", 0)));
  const std::int64_t past = call.has(3) && call.rank(3) == 4 ? call.shape(3)[2] : 0;
  if (call.integer("do_rotary", 0) != 0) {
    if (!call.has(7) || !call.has(8))
      return bad_input("its tables of cosines and sines are missing");
    Var positions = call.maybe(9);
    if (!positions) positions = positions_from(heads.q, {}) + static_cast<double>(past);
    const RotaryTables tables{call.in(7), call.in(8), positions};
    const std::int64_t width = tables.cos.rank() == 2 ? 2 * tables.cos.dim(1) : 0;
    const bool interleaved = call.integer("rotary_interleaved", 0) != 0;
    PLIMSOLL_TRY(heads.q, rotate(heads.q, tables, width, interleaved));
    PLIMSOLL_TRY(heads.k, rotate(heads.k, tables, width, interleaved));
  }
  if (past > 0) PLIMSOLL_RETURN_IF_ERROR(add_past(heads, call.in(3), call.in(4)));
  if (call.builder().error()) return {};
  AttentionParts parts{
      heads.q, heads.k, heads.v, {}, call.real("scale", 0), call.real("softcap", 0)};
  Visibility visible{true, heads.past};
  const std::int64_t window = call.integer("local_window_size", -1);
  // It counts the query itself.
  if (window > 0) visible.left = window - 1;
  PLIMSOLL_TRY(parts.mask, attention_mask({}, parts.q, parts.k, visible));
  PLIMSOLL_TRY(const AttentionResults made, attend(parts));
  call.out(0, heads_together(made.y));
  call.out(1, heads.k);
  call.out(2, heads.v);
  return {};
}

}  // namespace

std::vector<Operator> contrib_attention_operators() {
  return in_domain(
      "com.microsoft",
      {
          {"Attention", packed_attention,
           "do_rotary mask_filter_value num_heads past_present_share_buffer qkv_hidden_sizes "
           "rotary_embedding_dim scale unidirectional"},
          {"MultiHeadAttention", multi_head_attention,
           "mask_filter_value num_heads scale unidirectional"},
          {"GroupQueryAttention", group_query_attention,
           "do_rotary kv_num_heads local_window_size num_heads rotary_interleaved scale "
           "smooth_softmax softcap"},
          {"RotaryEmbedding", contrib_rotary,
           "interleaved is_packed_batching num_heads rotary_embedding_dim scale"},
      });
}

}  // namespace plimsoll::model::onnx
