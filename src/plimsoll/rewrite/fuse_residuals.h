// The ends of residual blocks in one pass, for devices whose kernels do it.
//
//   add_relu(batch_norm(x), other)   ->  batch_norm_add_relu(x, other)     forward
//   relu_grad(add(a, b), y)          ->  add_relu_grad(a, b, y)            backward
//   add(x, dropout(h))               ->  add_dropout(x, h)                 in transformers
//   add(layer_norm_grad(...), other) ->  layer_norm_grad_add(..., other)   and back
//   add(add(add(a, b), c), d)        ->  add_n(a, b, c, d)                 of one layer
//
// A tensor is neither written nor read again between the two: for resnet50 that is 8 of the 26
// trips to memory that an element of a block's result makes in a step. In bf16 add_n also rounds
// once for three times: bert's gradients of queries, keys and values meet so. Runs after
// differentiation: gradients of what was fused are there already. The norm moves to where the sum
// stands, which is where its inputs still are: its gradient reads them.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

Result<ir::Graph> fuse_residuals(const ir::Graph& graph);

}  // namespace plimsoll::rewrite
