// Attention written out in products and exponentials, with the score matrix as a value: what a
// gradient of a gradient differentiates. Internal to the attention definitions; only second order
// ever builds it.
//
// Heads are split as [B, Hk, H/Hk, S, D], so that grouped key/value heads broadcast.
#pragma once

#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/products/attention_sizes.h"

namespace plimsoll::ops {

class UnfusedAttention {
 public:
  UnfusedAttention(const AttentionSizes& sizes, Var q, Var k, Var v, Var mask);

  struct Gradients {
    Var dq, dk, dv;
  };
  Gradients gradient(Var dy, Var y, Var lse) const;

  struct QueryKeyGradients {
    Var dq, dk;
  };
  // What flows back from an adjoint of lse.
  QueryKeyGradients lse_gradient(Var adjoint, Var lse) const;

 private:
  Var split(Var x, std::int64_t groups, std::int64_t members, std::int64_t width) const;
  Var merged(Var x, Var like) const;
  Var column(Var per_row) const;
  Var scores() const;
  Var probabilities(Var lse) const;
  QueryKeyGradients from_scores(Var dscores) const;

  AttentionSizes sizes_;
  std::int64_t members_;  // query heads that share one key/value head
  Var q_, k_, v_, mask_;
  Var split_q_, split_k_, split_v_;  // wide
};

}  // namespace plimsoll::ops
