// The lines of a row-major tensor along the axis that a node's attribute names.
#pragma once

#include "plimsoll/kernels/cuda/launch.h"
#include "plimsoll/kernels/cuda/site.h"

namespace plimsoll::kernels::cuda {

inline Lines lines_of(const Site& site) {
  const ir::Shape& shape = site.in(0).shape;
  auto axis = static_cast<int>(site.attributes().integer("axis"));
  if (axis < 0) axis += shape.rank();
  return {shape.elements(0, axis), shape[axis], shape.elements(axis + 1, shape.rank())};
}

}  // namespace plimsoll::kernels::cuda
