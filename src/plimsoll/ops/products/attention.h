// Scaled dot-product attention as one operator, with the heads side by side in the last axis as
// linear layers make them.
//
//   q[B,Sq,H*D]  k[B,Sk,Hk*D]  v[B,Sk,Hk*Dv]  ->  y[B,Sq,H*Dv], lse[B,H,Sq]
//   scores = scale * q k^T (+ mask);  y = softmax(scores) v;  lse = log sum exp of a row of scores
//
// The matrix of scores [B,H,Sq,Sk], at long sequences the largest tensor of all, is never a value
// of the graph: a kernel works through it in tiles, and the gradient rebuilds each tile from q, k
// and lse. Grouped heads: H is a multiple of Hk, and head h reads key/value head h / (H/Hk).
// Causal: row i sees columns up to i + Sk - Sq, so that with a cache of earlier keys the last row
// sees everything. A row that sees nothing gives 0, with lse -infinity, and has no gradient.
//
// attention_qkv is the same with q, k and v side by side in one tensor, as one linear layer makes
// them: neither the three slices forward nor their concatenation backward exist.
//
// The mask is added to the scores; it gets no gradient. Statistics (lse) are fp32, fp64 for fp64.
// Cost: 2*(D+Dv) operations for every visible pair of positions and head, and five for the softmax.
#pragma once

#include "plimsoll/ops/builder.h"

namespace plimsoll::ops {

struct AttentionOptions {
  std::int64_t heads = 1;
  std::int64_t kv_heads = 0;  // 0: as many as heads
  double scale = 0;           // 0: 1/sqrt(D)
  bool causal = false;
};

struct Attention {
  Var y;
  Var lse;
};
Attention attention(Var q, Var k, Var v, const AttentionOptions& options, Var mask = {});
Attention attention_qkv(Var qkv, const AttentionOptions& options, Var mask = {});

}  // namespace plimsoll::ops
