// Tensors of one, two and three spatial axes as [batch, channel, depth, height, width]: missing
// axes in front of the spatial ones have an extent of 1.
#pragma once

#include "plimsoll/kernels/strided_loop.h"

namespace plimsoll::kernels::cuda {

inline void set_volume_steps(const ir::TensorType& type, std::int64_t (&steps)[5]) {
  const Strides own = strides_in_memory(type);
  const int rank = type.shape.rank();
  for (std::int64_t& step : steps) step = 0;
  steps[0] = own[0];
  steps[1] = own[1];
  for (int axis = 2; axis < rank; ++axis)
    steps[axis + 5 - rank] = own[static_cast<std::size_t>(axis)];
}

}  // namespace plimsoll::kernels::cuda
