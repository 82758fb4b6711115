// The sizes of a convolution over channels-last images, as our own loops see them: two axes of
// places (one of them a single place where the tensors have only one), with channels innermost.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plimsoll/base/checked.h"
#include "plimsoll/kernels/cpu/convolution_descriptor.h"

namespace plimsoll::kernels {

// One axis: place `i` of the result reads places i * stride + k * dilation - before of the data.
struct ImageAxis {
  std::int64_t data = 1;
  std::int64_t results = 1;
  std::int64_t taps = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t before = 0;

  std::int64_t place(std::int64_t i, std::int64_t k) const {
    return i * stride + k * dilation - before;
  }
  // The taps of result i that lie inside the data, [first, last).
  std::int64_t first_tap(std::int64_t i) const {
    const std::int64_t missing = before - i * stride;
    return std::min(taps, missing <= 0 ? 0 : ceil_div(missing, dilation));
  }
  std::int64_t last_tap(std::int64_t i) const {
    const std::int64_t room = data - 1 + before - i * stride;
    return room < 0 ? 0 : std::min(taps, room / dilation + 1);
  }
  // The results whose taps [first, last) all lie inside, [begin, end).
  std::int64_t first_whole(std::int64_t first) const {
    const std::int64_t missing = before - first * dilation;
    return std::min(results, missing <= 0 ? 0 : ceil_div(missing, stride));
  }
  std::int64_t last_whole(std::int64_t last) const {
    const std::int64_t room = data - 1 + before - (last - 1) * dilation;
    return room < 0 ? 0 : std::min(results, room / stride + 1);
  }
};

struct Images {
  std::int64_t batch = 0;
  std::int64_t channels = 0;  // of a place of the data
  std::int64_t filters = 0;   // of a place of the results
  ImageAxis rows;
  ImageAxis columns;

  std::int64_t taps() const { return rows.taps * columns.taps; }
  std::int64_t data_row() const { return columns.data * channels; }
  std::int64_t result_row() const { return columns.results * filters; }
};

// Whether our own loops take the tensors: fp32 images of one or two axes, channels last, none of
// them empty, with filters row-major.
bool are_plain_images(const ConvolutionTensors& tensors);

// The sizes that a node of this direction says; images of one or two axes.
Images images_of(const Site& site, ConvolutionDirection direction);

// Data and results change places: the data gradient at stride 1 is such a convolution, with the
// taps in reverse.
Images turned(const Images& images);

}  // namespace plimsoll::kernels
