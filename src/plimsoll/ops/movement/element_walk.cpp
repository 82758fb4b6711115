#include "plimsoll/ops/movement/element_walk.h"

namespace plimsoll::ops {

void copy_strided(Array& y, const Array& x, std::int64_t base, const Index& strides) {
  for_each_strided(y.type.shape, base, strides,
                   [&](std::int64_t i, std::int64_t j) { y.copy_element(i, x, j); });
}

void copy_mapped(Array& y, const Array& x, const AxisTables& tables) {
  const Index strides = x.type.shape.strides();
  const int rank = y.type.shape.rank();
  for_each_element(y.type.shape, [&](std::int64_t i, const Index& index) {
    std::int64_t at = 0;
    for (int axis = 0; axis < rank; ++axis) {
      const auto place = static_cast<std::size_t>(axis);
      const std::int64_t source = tables[place][static_cast<std::size_t>(index[place])];
      if (source < 0) return;
      at += source * strides[place];
    }
    y.copy_element(i, x, at);
  });
}

}  // namespace plimsoll::ops
