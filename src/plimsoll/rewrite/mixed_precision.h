// A model in fp32 computed in bf16 or fp16: `--amp` for models that were imported.
//
//   x fp32, w fp32   ->   matmul(cast(x), cast(w)) in bf16; what reads its result goes on in bf16
//
// The rules are those of the built-in models (model/net.h) and of PyTorch's autocast:
//   - inputs, weights, states and outputs keep their type; a weight is cast where it is first
//     computed with, so its gradient and its update are in fp32;
//   - products, convolutions, attention, activations and norms are computed in the narrow type
//     (norms and softmax widen inside);
//   - what only moves elements keeps the type of what it is given;
//   - everything else, as sums, powers, exponentials, divisions and losses, is computed in fp32,
//     and so is an operator whose definition refuses the narrow type.
// Results in other types than fp32 are left alone. A value is cast once in each direction.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

// `graph` is a forward graph; `compute` a float of 16 bits.
Result<ir::Graph> mixed_precision(const ir::Graph& graph, ir::DType compute);

}  // namespace plimsoll::rewrite
