// Reading an image between its pixels, at places that a run computes: what GridSample, RoiAlign and
// DeformConv have in common.
//
// A coordinate along one axis becomes taps: pixels to read and how much each counts. Interpolation
// on a grid of axes is separable, so a sample is the sum over all combinations of its axes' taps:
//
//   linear in two axes:   v = wy0·wx0·p[y0,x0] + wy0·wx1·p[y0,x1] + wy1·wx0·p[y1,x0] +
//                         wy1·wx1·p[y1,x1]
//
// Everything is built from gather and arithmetic, so gradients reach both the image (scatter-add of
// rows) and the coordinates (through the weights) without a rule of their own. Pixels are rows of
// channels [pixels, C]: one index fetches a whole row. Taps outside the image count nothing, or lie
// on its edge.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/model/onnx/convert/operator_call.h"

namespace plimsoll::model::onnx {

// Taps along one axis for many samples: index[t] (int64) and weight[t] (float) have the samples'
// shape, or one that broadcasts to it.
struct AxisTaps {
  std::vector<Var> index;
  std::vector<Var> weight;
};

enum class Outside { kNothing, kEdge };

// 1 where 0 ≤ place ≤ extent − 1, else 0, in the dtype of `place`.
Var inside(Var place, std::int64_t extent);
// Taps at the pixels `places` (whole numbers as floats) that count `weights`.
AxisTaps taps_at(const std::vector<Var>& places, const std::vector<Var>& weights,
                 std::int64_t extent, Outside outside);
// The two pixels around each coordinate.
AxisTaps linear_taps(Var coordinate, std::int64_t extent, Outside outside);

// Channels last: an image [N, C, spatial...] as rows [N·pixels, C].
Var pixel_rows(Var image);

// How the taps of a sample become one value.
enum class Combine { kSum, kLargest };

// Samples [shape..., C]. `first` (int64, the samples' shape or broadcasting to it) is the row of
// each sample's image; the axes' taps and extents are those of the spatial axes, outermost first.
Var sample(Var rows, Var first, const std::vector<AxisTaps>& axes,
           const std::vector<std::int64_t>& extents, Combine combine = Combine::kSum);

}  // namespace plimsoll::model::onnx
