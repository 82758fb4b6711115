// What scales and shifts channels by known numbers behind a convolution is part of the convolution:
// the scale goes into the weights, the shift into the bias. For inference only; exporters that were
// told not to fold leave it to us.
//
//   y = (conv(x, w) + b - mean) * gamma / sqrt(var + eps) + beta
//     = conv(x, w * s) + ((b - mean) * s + beta)
//
// Batch norm with fixed statistics is such a line for each channel, and so are products, quotients,
// sums and differences with one number or one number a channel (Caffe's Scale behind its
// BatchNorm). A chain of them is taken whole:
//
//   conv -> batch norm -> * [64,1,1] -> + [64,1,1]    becomes    conv
//   concat -> batch norm -> * [64,1,1] -> + [64,1,1]  becomes    concat -> batch norm
//
// The new weights are computed once, at import, and owned by the source; the old ones are no longer
// read. Weights that a file only says how to fill are written out for it, up to kMostFilled
// elements a model and kMostFilledEach a weight: a few bytes of file must not become gigabytes.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/store/weight_source.h"

namespace plimsoll::model::onnx {

inline constexpr std::int64_t kMostFilled = std::int64_t{1} << 25;
inline constexpr std::int64_t kMostFilledEach = std::int64_t{1} << 22;

Result<ir::Graph> fold_batch_norm(ir::Graph graph, store::WeightSource& weights);

}  // namespace plimsoll::model::onnx
