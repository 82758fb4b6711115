// A window that slides over the spatial axes: the geometry convolution and pooling share.
//
//   extent 7, kernel 3, stride 2, pads 1+1, dilation 1:
//     . 0 1 2 3 4 5 6 .        places at -1, 1, 3, 5  ->  4 results
//     [---]   [---]
//         [---]   [---]
//
// One, two and three spatial axes are all treated as three: missing ones in front have extent 1 and
// a kernel of 1. Every number of a window is checked on reading to be so small (below 2^31, extents
// below 2^40) that no later arithmetic can overflow.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/shape.h"
#include "plimsoll/ops/definition/attribute_spec.h"

namespace plimsoll::ops {

// Depth, height, width.
using Volume = std::array<std::int64_t, 3>;
inline constexpr int kVolumeAxes = 3;
std::int64_t elements(const Volume& volume);

struct Window {
  int axes = 0;  // how many of the three are real: the last ones
  Volume kernel{1, 1, 1};
  Volume strides{1, 1, 1};
  Volume dilations{1, 1, 1};
  Volume begins{0, 0, 0};  // padding in front
  Volume ends{0, 0, 0};    // padding behind

  // From the first to the last element the kernel touches, both included.
  std::int64_t reach(std::size_t axis) const { return dilations[axis] * (kernel[axis] - 1) + 1; }
};

// Reads strides, pads and, where the operator has them, dilations (absent: 1, 0, 1) for a kernel of
// these extents.
Result<Window> read_window(const AttributeReader& attributes, std::span<const std::int64_t> kernel);

// The axes behind batch and channels of a shape of rank 3 to 5.
Volume volume_of(const ir::Shape& shape);

// How many places the window has on the spatial axes of `shape`. With `ceil_mode` a last place that
// begins inside the data or the padding in front counts even where it overhangs.
Result<Volume> places(const Window& window, const ir::Shape& shape, bool ceil_mode = false);

// Batch, channels, then the last `axes` of the volume.
ir::Shape shape_of(std::int64_t batch, std::int64_t channels, const Volume& volume, int axes);

inline constexpr std::int64_t kOutside = -1;

// For every result position, the data position that one place of the kernel reads there, or
// kOutside for padding: positions in row-major order, 'reading' holds one entry per result.
void read_positions(const Window& window, const Volume& data, const Volume& results,
                    const Volume& place, std::vector<std::int64_t>& reading);

// Calls body(index of the kernel's place, its read positions) for all places in row-major order.
template <typename Body>
void for_each_place(const Window& window, const Volume& data, const Volume& results, Body body) {
  std::vector<std::int64_t> reading;
  std::int64_t index = 0;
  for (std::int64_t z = 0; z < window.kernel[0]; ++z) {
    for (std::int64_t y = 0; y < window.kernel[1]; ++y) {
      for (std::int64_t x = 0; x < window.kernel[2]; ++x) {
        read_positions(window, data, results, {z, y, x}, reading);
        body(index++, reading);
      }
    }
  }
}

}  // namespace plimsoll::ops
