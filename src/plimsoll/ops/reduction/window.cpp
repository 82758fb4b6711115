#include "plimsoll/ops/reduction/window.h"

namespace plimsoll::ops {
namespace {

constexpr std::int64_t kLargestNumber = (std::int64_t{1} << 31) - 1;
constexpr std::int64_t kLargestExtent = std::int64_t{1} << 40;

Status check_numbers(std::string_view name, std::span<const std::int64_t> numbers,
                     std::size_t count, std::int64_t least) {
  if (numbers.size() != count)
    return bad_input("{} has {} numbers, expects {}", name, numbers.size(), count);
  for (const std::int64_t number : numbers) {
    if (number < least || number > kLargestNumber) {
      return bad_input("{} holds {}, expects {} to {}", name, number, least, kLargestNumber);
    }
  }
  return {};
}

}  // namespace

std::int64_t elements(const Volume& volume) {
  return volume[0] * volume[1] * volume[2];
}

Result<Window> read_window(const AttributeReader& attributes,
                           std::span<const std::int64_t> kernel) {
  const std::size_t axes = kernel.size();
  if (axes < 1 || axes > kVolumeAxes) return bad_input("has {} spatial axes, expects 1 to 3", axes);
  const ir::Ints ones(axes, 1);
  const ir::Ints strides = attributes.integers("strides", ones);
  const ir::Ints dilations =
      attributes.declares("dilations") ? attributes.integers("dilations", ones) : ones;
  const ir::Ints pads = attributes.integers("pads", ir::Ints(2 * axes, 0));
  PLIMSOLL_RETURN_IF_ERROR(check_numbers("kernel", kernel, axes, 1));
  PLIMSOLL_RETURN_IF_ERROR(check_numbers("strides", strides, axes, 1));
  PLIMSOLL_RETURN_IF_ERROR(check_numbers("dilations", dilations, axes, 1));
  PLIMSOLL_RETURN_IF_ERROR(check_numbers("pads", pads, 2 * axes, 0));
  Window window;
  window.axes = static_cast<int>(axes);
  for (std::size_t i = 0; i < axes; ++i) {
    const std::size_t axis = kVolumeAxes - axes + i;
    window.kernel[axis] = kernel[i];
    window.strides[axis] = strides[i];
    window.dilations[axis] = dilations[i];
    window.begins[axis] = pads[i];
    window.ends[axis] = pads[axes + i];
  }
  return window;
}

Volume volume_of(const ir::Shape& shape) {
  Volume out{1, 1, 1};
  for (int axis = 2; axis < shape.rank(); ++axis) {
    out[static_cast<std::size_t>(axis + kVolumeAxes - shape.rank())] = shape[axis];
  }
  return out;
}

Result<Volume> places(const Window& window, const ir::Shape& shape, bool ceil_mode) {
  const Volume data = volume_of(shape);
  Volume out{1, 1, 1};
  for (std::size_t axis = static_cast<std::size_t>(kVolumeAxes - window.axes); axis < kVolumeAxes;
       ++axis) {
    const std::int64_t extent = data[axis];
    if (extent > kLargestExtent) return bad_input("extent {} is above {}", extent, kLargestExtent);
    const std::int64_t padded = extent + window.begins[axis] + window.ends[axis];
    const std::int64_t room = padded - window.reach(axis);
    if (room < 0) {
      return bad_input("kernel reaches over {}, input has {} with {} of padding",
                       window.reach(axis), extent, padded - extent);
    }
    const std::int64_t stride = window.strides[axis];
    out[axis] = room / stride + 1;
    if (ceil_mode && room % stride != 0 && out[axis] * stride < extent + window.begins[axis])
      ++out[axis];
  }
  return out;
}

ir::Shape shape_of(std::int64_t batch, std::int64_t channels, const Volume& volume, int axes) {
  ir::Shape out{batch, channels};
  for (int axis = kVolumeAxes - axes; axis < kVolumeAxes; ++axis) {
    out.push_back(volume[static_cast<std::size_t>(axis)]);
  }
  return out;
}

void read_positions(const Window& window, const Volume& data, const Volume& results,
                    const Volume& place, std::vector<std::int64_t>& reading) {
  const auto at = [&](std::size_t axis, std::int64_t result) {
    const std::int64_t position =
        result * window.strides[axis] + place[axis] * window.dilations[axis] - window.begins[axis];
    return position >= 0 && position < data[axis] ? position : kOutside;
  };
  reading.clear();
  for (std::int64_t z = 0; z < results[0]; ++z) {
    const std::int64_t at_z = at(0, z);
    for (std::int64_t y = 0; y < results[1]; ++y) {
      const std::int64_t at_y = at(1, y);
      for (std::int64_t x = 0; x < results[2]; ++x) {
        const std::int64_t at_x = at(2, x);
        const bool inside = at_z != kOutside && at_y != kOutside && at_x != kOutside;
        reading.push_back(inside ? (at_z * data[1] + at_y) * data[2] + at_x : kOutside);
      }
    }
  }
}

}  // namespace plimsoll::ops
