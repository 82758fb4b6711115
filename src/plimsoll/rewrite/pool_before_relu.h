// max_pool(relu(x)) becomes relu(max_pool(x)).
//
// Both pick the same numbers: ReLU is monotone, so the largest of a window is the same before and
// after it. And both send the same gradients back: a window without a positive number gives zero
// either way, any other has its maximum at the same place. But ReLU's gradient needs the sign of
// ReLU's result; behind the pool that is the small map, which the next convolution keeps anyway, so
// the large one is never kept: 48 MiB of AlexNet's activations at batch 32, and ReLU itself runs on
// a quarter of the elements or less.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

// Only where the pool is ReLU's one reader.
Result<ir::Graph> pool_before_relu(const ir::Graph& graph);

}  // namespace plimsoll::rewrite
