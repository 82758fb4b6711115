// Pooling over one to three spatial axes.
//
// max_pool keeps, for every result, which place of the window won: one byte where the window has at
// most 256 places. That index is all the gradient reads, so neither x nor y stays alive. Padding
// never wins; where two places are equal the first one does. max_pool_select is the gradient's own
// gradient: it picks the winners' elements out of a tensor like x.
//
//   max_pool(x) -> y, index      max_pool_grad(dy, index) -> dx      max_pool_select(x, index) -> y
//
// avg_pool divides by the elements that are data, or with count_include_pad by those that are data
// or padding (what a ceil_mode window overhangs beyond the padding counts never).
#pragma once

#include "plimsoll/ops/builder.h"

namespace plimsoll::ops {

struct PoolOptions {
  ir::Ints kernel{};
  ir::Ints strides{};    // absent: ones
  ir::Ints pads{};       // begins, then ends; absent: zeros
  ir::Ints dilations{};  // max_pool only; absent: ones
  bool ceil_mode = false;
  bool count_include_pad = false;  // avg_pool only
};

struct MaxPool {
  Var y;
  Var index;
};
MaxPool max_pool(Var x, const PoolOptions& options);
Var avg_pool(Var x, const PoolOptions& options);

}  // namespace plimsoll::ops
