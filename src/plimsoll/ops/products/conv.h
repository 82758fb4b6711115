// Convolution over one to three spatial axes, its gradients, and its transpose.
//
//   x[N,C,H,W]  w[M,C/group,kh,kw]  bias[M]  ->  y[N,M,H',W']     H' = (H + pads - reach)/stride +
//   1
//
// The three operators close under differentiation, because convolution is linear in x and in w:
//
//              gradient for ...    x or dy                        w
//   conv                           conv_grad_input(dy, w)         conv_grad_weight(x, dy)
//   conv_grad_input(dy, w) -> dx   conv(adjoint, w)               conv_grad_weight(adjoint, dy)
//   conv_grad_weight(x, dy) -> dw  conv_grad_input(dy, adjoint)   conv(x, adjoint)
//
// so any order works without a decomposition, and nothing but x, w and dy is ever read. The
// gradient of the bias is made together with that of w. conv_transpose(x, w) is conv_grad_input
// with a bias and with the shape of its result computed from output_padding (which is below the
// stride).
//
// Cost: 2 * y's elements * C/group * kernel operations for each of the three.
#pragma once

#include "plimsoll/ops/builder.h"

namespace plimsoll::ops {

struct ConvOptions {
  ir::Ints strides{};    // absent: ones
  ir::Ints pads{};       // begins, then ends; absent: zeros
  ir::Ints dilations{};  // absent: ones
  std::int64_t group = 1;
};

Var conv(Var x, Var w, Var bias = {}, const ConvOptions& options = {});
Var conv_grad_input(Var dy, Var w, ir::Shape x_shape, const ConvOptions& options = {});

struct ConvWeightGradient {
  Var dw;
  Var db;  // absent when not asked for
};
ConvWeightGradient conv_grad_weight(Var x, Var dy, ir::Shape w_shape, const ConvOptions& options,
                                    bool with_bias);

Var conv_transpose(Var x, Var w, Var bias = {}, const ConvOptions& options = {},
                   const ir::Ints& output_padding = {});

}  // namespace plimsoll::ops
