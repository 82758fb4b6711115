#include "plimsoll/ops/products/attention_unfused.h"

#include <limits>

#include "plimsoll/ops/compose.h"
#include "plimsoll/ops/normalization/softmax.h"
#include "plimsoll/ops/products/matmul.h"

namespace plimsoll::ops {
namespace {

constexpr double kHidden = -std::numeric_limits<double>::infinity();
// Stands in for the lse of a row that sees nothing: against it the exponential of a hidden score is
// zero.
constexpr double kLeastLse = -1e20;

// Whether rows with such an lse see anything.
Var sees(Var lse) {
  const bool narrow = lse.dtype() != ir::DType::kF64;
  const double least =
      narrow ? std::numeric_limits<float>::lowest() : std::numeric_limits<double>::lowest();
  return greater_equal(lse, number(lse, least));
}

}  // namespace

UnfusedAttention::UnfusedAttention(const AttentionSizes& sizes, Var q, Var k, Var v, Var mask)
    : sizes_(sizes), members_(sizes.heads / sizes.kv_heads), q_(q), k_(k), v_(v), mask_(mask) {
  split_q_ = split(q, sizes.kv_heads, members_, sizes.width);
  split_k_ = split(k, sizes.kv_heads, 1, sizes.width);
  split_v_ = split(v, sizes.kv_heads, 1, sizes.value_width);
}

Var UnfusedAttention::split(Var x, std::int64_t groups, std::int64_t members,
                            std::int64_t width) const {
  return transpose(reshape(widened(x), {x.dim(0), x.dim(1), groups, members, width}),
                   {0, 2, 3, 1, 4});
}

Var UnfusedAttention::merged(Var x, Var like) const {
  return cast(reshape(transpose(x, {0, 3, 1, 2, 4}), like.shape()), like.dtype());
}

Var UnfusedAttention::column(Var per_row) const {
  return reshape(per_row, {sizes_.batch, sizes_.kv_heads, members_, sizes_.rows, 1});
}

Var UnfusedAttention::scores() const {
  Builder& builder = q_.builder();
  Var out = matmul(split_q_, split_k_, {.trans_b = true}) * sizes_.scale;
  if (mask_) {
    ir::Shape shape{1, 1, 1, 1};
    for (int axis = 0; axis < mask_.rank(); ++axis)
      shape[axis + 4 - mask_.rank()] = mask_.dim(axis);
    const bool per_head = shape[1] != 1;
    const ir::Shape split_shape{shape[0], per_head ? sizes_.kv_heads : 1, per_head ? members_ : 1,
                                shape[2], shape[3]};
    out = out + reshape(widened(mask_), split_shape);
  }
  if (sizes_.causal) {
    const TensorType positions{ir::DType::kI64, {sizes_.rows, sizes_.columns}, {}};
    const Var column = iota(builder, positions, 1);
    const Var last_seen = iota(builder, positions, 0, sizes_.columns - sizes_.rows);
    out = where(greater(column, last_seen), number(out, kHidden), out);
  }
  return out;
}

Var UnfusedAttention::probabilities(Var lse) const {
  const Var of_row = column(lse);
  const Var all = scores();
  const Var near = exp(all - maximum(of_row, number(lse, kLeastLse)));
  // See kFarLse. What the row does not see must not stand in the exponent: its zero times infinity
  // is no gradient.
  const Var far = logical_and(greater(abs(of_row), number(lse, kFarLse)), sees(of_row));
  const Var normalised = softmax(where(far, all, number(all, 0)), 4);
  return where(far, normalised, near);
}

UnfusedAttention::QueryKeyGradients UnfusedAttention::from_scores(Var dscores) const {
  const Var scaled = dscores * sizes_.scale;
  const Var dq = matmul(scaled, split_k_);
  const Var dk = sum_to(matmul(scaled, split_q_, {.trans_a = true}), split_k_.shape());
  return {merged(dq, q_), merged(dk, k_)};
}

UnfusedAttention::Gradients UnfusedAttention::gradient(Var dy, Var y, Var lse) const {
  const Var p = probabilities(lse);
  const Var split_dy = split(dy, sizes_.kv_heads, members_, sizes_.value_width);
  const Var split_y = split(y, sizes_.kv_heads, members_, sizes_.value_width);
  const Var mean = sum_over(split_dy * split_y, {4});
  const Var dp = matmul(split_dy, split_v_, {.trans_b = true});
  const auto [dq, dk] = from_scores(p * (dp - mean));
  const Var dv = sum_to(matmul(p, split_dy, {.trans_a = true}), split_v_.shape());
  return {dq, dk, merged(dv, v_)};
}

UnfusedAttention::QueryKeyGradients UnfusedAttention::lse_gradient(Var adjoint, Var lse) const {
  return from_scores(probabilities(lse) * column(adjoint));
}

}  // namespace plimsoll::ops
