// A dense layer: y = x * w + bias over the last axis of x, whatever stands before it.
//
//   x[8,128,768]  w[768,3072]  bias[3072]  ->  y[8,128,3072]
//
// trans_w = 1 says that w lies as [N,K] (PyTorch's nn.Linear), 0 as [K,N] (GPT-2's). The gradient
// of x is `linear` with the flag turned; those of w and bias come from one `linear_grad_weight`,
// which reads x and dy once for both. Every gradient is bilinear again, so any order works. Cost:
// 2*rows*K*N operations.
//
// Both may be computed in parts of rows (Split in op_definition.h). A weight gradient in parts goes
// on from the gradient of the rows before it, dw_before and db_before, and may lie over them.
#pragma once

#include "plimsoll/ops/builder.h"

namespace plimsoll::ops {

struct LinearOptions {
  bool trans_w = false;
};

// An absent bias is not added.
Var linear(Var x, Var w, Var bias = {}, const LinearOptions& options = {});

struct LinearWeightGradient {
  Var dw;
  Var db;  // absent when not asked for
};
LinearWeightGradient linear_grad_weight(Var x, Var dy, const LinearOptions& options,
                                        bool with_bias);

}  // namespace plimsoll::ops
