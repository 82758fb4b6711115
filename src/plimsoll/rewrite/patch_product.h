// A convolution that cuts an image into patches is a product of matrices.
//
// Vision transformers embed patches with a filter as large as its stride, 16 x 16 or more, over
// three channels. No place is read twice, so nothing is gained by a convolution; and oneDNN has no
// vector code for the weights' gradient of filters that large: its reference takes longer than all
// the rest of a training step together.
//
//   conv(x[N,C,H,W], w[M,C,k,k]) {strides k}  ->  the patches as rows [N, H/k, W/k, C k k], times w
//
// The result is turned to [N, M, H/k, W/k] for those who read it so; where it is flattened and
// turned to [N, places, M] next, as in every vision transformer, that is what the product gave
// already.
//
// Only for few input channels and filters wider than 7: other convolutions have good kernels.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

Result<ir::Graph> multiply_patches(const ir::Graph& graph);

}  // namespace plimsoll::rewrite
