// Attention and rotation of positions, as the operators of several domains need them.
#pragma once

#include "plimsoll/model/onnx/convert/operator_call.h"

namespace plimsoll::model::onnx {

// q [B,H,Sq,D], k [B,Hk,Sk,D], v [B,Hk,Sk,Dv]; mask is added to the scores and broadcasts to
// [B,H,Sq,Sk].
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

// `want_scores`: -1 none; 0 the products, 1 after the soft cap, 2 with the mask, 3 after softmax.
// Without them the whole is one operator of ours.
Result<AttentionResults> attend(const AttentionParts& parts, int want_scores = -1);

// Which keys a query may see by its place. Row i stands at position i + before, or, when the
// batch's lengths are given, so that the last row is the last of them.
struct Visibility {
  bool causal = false;      // none behind its position
  std::int64_t before = 0;  // keys before the first row
  Var lengths = {};         // [B], integers: keys from here on are padding
  std::int64_t left = -1;   // how far back, and ahead; -1: no bound
  std::int64_t right = -1;
};

// A mask (boolean: true may be seen; or numbers to add) and what may be seen as one thing to add;
// absent when there is nothing. A mask with fewer columns than there are keys hides the others.
Result<Var> attention_mask(Var mask, Var q, Var k, const Visibility& visible);

// [B, S, H·D] as [B, H, S, D], and back.
Result<Var> heads_apart(Var x, std::int64_t heads, std::string_view what);
Var heads_together(Var x);

// cos and sin [positions, D/2] with positions [B,S], or [B,S,D/2] without.
struct RotaryTables {
  Var cos;
  Var sin;
  Var positions;
};
// x [B,H,S,D]; the first `width` of D are turned, pairs (i, i + width/2), or (2i, 2i+1) when
// interleaved.
Result<Var> rotate(Var x, const RotaryTables& tables, std::int64_t width, bool interleaved);

}  // namespace plimsoll::model::onnx
