// Where a gradient needs only one bit of a map, that bit is kept instead of the map.
//
//   y = relu(x)   ...   dx = relu_grad(dy, y)         32 bits of y wait for the backward pass
//   y = relu(x);  m = positive_mask(y)   ...   dx = masked(dy, m)         1 bit does
//
// The same for clip_grad(dy, x). Done only where nothing else of the backward pass reads the map:
// if a convolution's weight gradient needs y anyway, a mask beside it would only add to it. Between
// ReLU and dropout, a sum, a concatenation or a mean, and for MobileNet's clipped batch norms, the
// map goes.
//
// For graphs that have been differentiated and laid out, in fp32. The results are the same bit by
// bit.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

Result<ir::Graph> keep_masks(const ir::Graph& graph);

}  // namespace plimsoll::rewrite
