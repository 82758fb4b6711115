// Attention and rotation of positions, as the operators of several domains need them.
#pragma once

#include "plimsoll/model/onnx/operator_call.h"

namespace plimsoll::model::onnx {

// q [B,H,Sq,D], k [B,Hk,Sk,D], v [B,Hk,Sk,Dv]; mask is added to the scores and broadcasts to [B,H,Sq,Sk].
struct AttentionParts {
  Var q;
  Var k;
  Var v;
  Var mask;
  double scale = 0;    // 0: 1/sqrt(D)
  double softcap = 0;  // 0: none
};

struct AttentionResults {
  Var y;       // [B,H,Sq,Dv]
  Var scores;  // when asked for
};

// `want_scores`: -1 none; 0 the products, 1 after the soft cap, 2 with the mask, 3 after softmax. Without them the
// whole is one operator of ours.
Result<AttentionResults> attend(const AttentionParts& parts, int want_scores = -1);

// A mask (boolean: true may be seen; or numbers to add) and causality as one thing to add; absent when there is
// nothing. Row i sees columns up to i + past.
Result<Var> attention_mask(Var mask, Var q, Var k, bool causal, std::int64_t past);

// cos and sin [positions, D/2] with positions [B,S], or [B,S,D/2] without.
struct RotaryTables {
  Var cos;
  Var sin;
  Var positions;
};
// x [B,H,S,D]; the first `width` of D are turned, pairs (i, i + width/2), or (2i, 2i+1) when interleaved.
Result<Var> rotate(Var x, const RotaryTables& tables, std::int64_t width, bool interleaved);

}  // namespace plimsoll::model::onnx
