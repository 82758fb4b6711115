#include "plimsoll/ops/movement/channel_groups.h"

namespace plimsoll::ops {

ir::Layout groups_last(int rank) {
  ir::Layout out;
  out.rank = static_cast<std::uint8_t>(rank);
  for (int axis = 3; axis < rank; ++axis) {
    out.order[static_cast<std::size_t>(axis - 2)] = static_cast<std::uint8_t>(axis);
  }
  out.order[static_cast<std::size_t>(rank - 2)] = 1;
  out.order[static_cast<std::size_t>(rank - 1)] = 2;
  return out;
}

bool cuts_channels(const ir::Shape& whole, const ir::Shape& apart) {
  if (whole.rank() < 3 || apart.rank() != whole.rank() + 1) return false;
  if (whole[0] != apart[0] || whole[1] != apart[1] * apart[2]) return false;
  for (int axis = 2; axis < whole.rank(); ++axis) {
    if (whole[axis] != apart[axis + 1]) return false;
  }
  return true;
}

bool is_channel_cut(const ir::TensorType& whole, const ir::TensorType& apart) {
  return cuts_channels(whole.shape, apart.shape) &&
         whole.layout == ir::Layout::channels_last(whole.shape.rank()) &&
         apart.layout == groups_last(apart.shape.rank());
}

}  // namespace plimsoll::ops
