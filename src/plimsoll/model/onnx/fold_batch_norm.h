// Batch norm with fixed statistics behind a convolution is part of the convolution: its scale goes into the weights,
// its shift into the bias. For inference only; exporters that were told not to fold leave it to us.
//
//   y = (conv(x, w) + b - mean) * gamma / sqrt(var + eps) + beta  =  conv(x, w * s) + ((b - mean) * s + beta)
//
// The new weights are computed once, at import, and owned by the source; the old ones are no longer read.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/store/weight_source.h"

namespace plimsoll::model::onnx {

Result<ir::Graph> fold_batch_norm(ir::Graph graph, store::WeightSource& weights);

}  // namespace plimsoll::model::onnx
