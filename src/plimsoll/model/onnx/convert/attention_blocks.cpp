#include "plimsoll/model/onnx/convert/attention_blocks.h"

#include <cmath>
#include <limits>

#include "plimsoll/model/onnx/convert/building_blocks.h"

namespace plimsoll::model::onnx {
namespace {

using ir::DType;

// Each of Hk heads repeated for its group of queries.
Var repeat_heads(Var x, std::int64_t heads) {
  const std::int64_t own = x.dim(1);
  if (own == heads) return x;
  const std::int64_t times = heads / own;
  const Var wide = expand_to(reshape_to(x, {x.dim(0), own, 1, x.dim(2), x.dim(3)}),
                             {x.dim(0), own, times, x.dim(2), x.dim(3)});
  return reshape_to(wide, {x.dim(0), heads, x.dim(2), x.dim(3)});
}

Status check(const AttentionParts& p) {
  if (p.q.rank() != 4 || p.k.rank() != 4 || p.v.rank() != 4)
    return bad_input("q, k and v are not of rank 4");
  if (p.k.dim(1) < 1 || p.q.dim(1) % p.k.dim(1) != 0 || p.k.dim(1) != p.v.dim(1)) {
    return bad_input("{} heads of queries do not divide over {} of keys", p.q.dim(1), p.k.dim(1));
  }
  return {};
}

// Step by step, for who wants to see the scores or caps them.
AttentionResults attend_by_parts(const AttentionParts& p, double scale, int want_scores) {
  Builder& builder = p.q.builder();
  const std::int64_t heads = p.q.dim(1);
  const Var k = repeat_heads(p.k, heads);
  const Var v = repeat_heads(p.v, heads);
  AttentionResults out;
  Var scores = builder.call1("matmul", {p.q, k}, {{"trans_b", std::int64_t{1}}}) * scale;
  if (want_scores == 0) out.scores = scores;
  if (p.softcap > 0) scores = unary_call("tanh", scores / p.softcap) * p.softcap;
  if (want_scores == 1) out.scores = scores;
  if (p.mask) scores = scores + p.mask;
  if (want_scores == 2) out.scores = scores;
  scores = builder.call1("softmax", {scores}, {{"axis", std::int64_t{-1}}});
  // Rows that see nothing give zeros.
  if (p.mask)
    scores =
        builder.call1("where", {builder.call1("is_nan", {scores}), ops::number(scores, 0), scores});
  if (want_scores == 3) out.scores = scores;
  out.y = builder.call1("matmul", {scores, v});
  return out;
}

}  // namespace

Result<AttentionResults> attend(const AttentionParts& p, int want_scores) {
  PLIMSOLL_RETURN_IF_ERROR(check(p));
  Builder& builder = p.q.builder();
  const std::int64_t heads = p.q.dim(1);
  const double scale =
      p.scale != 0 ? p.scale
                   : 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(p.q.dim(3), 1)));
  if (want_scores >= 0 || p.softcap > 0) return attend_by_parts(p, scale, want_scores);
  std::vector<Var> inputs{heads_together(p.q), heads_together(p.k), heads_together(p.v)};
  if (p.mask) inputs.push_back(p.mask);
  const Var y = builder.call1("attention", inputs,
                              {{"heads", heads}, {"kv_heads", p.k.dim(1)}, {"scale", scale}});
  if (builder.error()) return tl::unexpected<Error>(*builder.error());
  AttentionResults out;
  out.y = transpose_by(reshape_to(y, {y.dim(0), y.dim(1), heads, y.dim(2) / heads}), {0, 2, 1, 3});
  return out;
}

namespace {

// Where a query may look, [Sq, Sk] or [B, 1, Sq, Sk]; absent when everywhere.
Result<Var> seen(Var q, Var k, const Visibility& visible) {
  Builder& builder = q.builder();
  const ir::Ints shape{q.dim(2), k.dim(2)};
  const auto index = [&](std::int64_t axis, std::int64_t start) {
    return builder.call1("iota", {},
                         {{"shape", shape},
                          {"dtype", std::string("int64")},
                          {"axis", axis},
                          {"start", static_cast<double>(start)}});
  };
  const Var key = index(1, 0);
  Var position = index(0, visible.lengths ? -q.dim(2) : visible.before);
  Var lengths;
  if (visible.lengths) {
    if (visible.lengths.shape() != ir::Shape{q.dim(0)})
      return bad_input("its lengths do not fit the batch");
    lengths = reshape_to(cast_to(visible.lengths, DType::kI64), {q.dim(0), 1, 1, 1});
    position = position + lengths;
  }
  Var out;
  const auto also = [&](std::string_view op, Var a, Var b) {
    const Var fact = builder.call1(op, {a, b});
    out = out ? builder.call1("logical_and", {out, fact}) : fact;
  };
  if (visible.causal) also("less_equal", key, position);
  if (visible.left >= 0) also("greater_equal", key, position - static_cast<double>(visible.left));
  if (visible.right >= 0) also("less_equal", key, position + static_cast<double>(visible.right));
  if (lengths) also("less", key, lengths);
  return out;
}

}  // namespace

Result<Var> attention_mask(Var mask, Var q, Var k, const Visibility& visible) {
  Builder& builder = q.builder();
  if (q.rank() != 4 || k.rank() != 4) return bad_input("q and k are not of rank 4");
  constexpr double kHidden = -std::numeric_limits<double>::infinity();
  const Var none = ops::number(q, kHidden);
  const Var zero = ops::number(q, 0);
  if (mask && mask.dtype() == DType::kBool) mask = builder.call1("where", {mask, zero, none});
  if (mask) {
    mask = cast_to(mask, q.dtype());
    const std::int64_t columns = mask.rank() > 0 ? mask.dim(-1) : 1;
    if (columns > 1 && columns < k.dim(2)) {
      ir::Ints pads(static_cast<std::size_t>(2 * mask.rank()), 0);
      pads.back() = k.dim(2) - columns;
      mask = builder.call1("pad", {mask}, {{"pads", pads}, {"value", kHidden}});
    }
  }
  PLIMSOLL_TRY(const Var may, seen(q, k, visible));
  if (!may) return mask;
  const Var hidden = builder.call1("where", {may, zero, none});
  return mask ? mask + hidden : hidden;
}

Result<Var> heads_apart(Var x, std::int64_t heads, std::string_view what) {
  if (x.rank() == 4) return x;
  if (x.rank() != 3 || heads < 1 || x.dim(2) % heads != 0) {
    return bad_input("{} {} does not divide into {} heads", what, ir::to_string(x.shape()), heads);
  }
  return transpose_by(reshape_to(x, {x.dim(0), x.dim(1), heads, x.dim(2) / heads}), {0, 2, 1, 3});
}

Var heads_together(Var x) {
  const Var y = transpose_by(x, {0, 2, 1, 3});
  if (x.builder().error()) return x;
  return reshape_to(y, {y.dim(0), y.dim(1), y.dim(2) * y.dim(3)});
}

Result<Var> rotate(Var x, const RotaryTables& tables, std::int64_t width, bool interleaved) {
  if (width < 2 || width % 2 != 0 || width > x.dim(3))
    return bad_input("{} of {} elements cannot be turned", width, x.dim(3));
  Builder& builder = x.builder();
  const auto table = [&](Var v) {
    if (tables.positions)
      v = builder.call1("gather", {v, tables.positions}, {{"axis", std::int64_t{0}}});
    if (builder.error() || v.rank() != 3) return v;
    v = slice_axis(v, 2, 0, std::min(width / 2, v.dim(2)));
    return reshape_to(v, {v.dim(0), 1, v.dim(1), v.dim(2)});
  };
  const Var cos = table(tables.cos);
  const Var sin = table(tables.sin);
  const Var turned = slice_axis(x, 3, 0, width);
  if (builder.error()) return x;
  Var a;
  Var b;
  const ir::Ints pairs{x.dim(0), x.dim(1), x.dim(2), width / 2, 2};
  if (interleaved) {
    a = select(reshape_to(turned, pairs), 4, 0);
    b = select(reshape_to(turned, pairs), 4, 1);
  } else {
    a = slice_axis(turned, 3, 0, width / 2);
    b = slice_axis(turned, 3, width / 2, width);
  }
  Var first = a * cos - b * sin;
  Var second = b * cos + a * sin;
  if (builder.error()) return x;
  Var y;
  if (interleaved) {
    const ir::Ints single{x.dim(0), x.dim(1), x.dim(2), width / 2, 1};
    y = reshape_to(concat_all({reshape_to(first, single), reshape_to(second, single)}, 4),
                   {x.dim(0), x.dim(1), x.dim(2), width});
  } else {
    y = concat_all({first, second}, 3);
  }
  return width == x.dim(3) ? y : concat_all({y, slice_axis(x, 3, width, x.dim(3))}, 3);
}

}  // namespace plimsoll::model::onnx
