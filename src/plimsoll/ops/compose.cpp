#include "plimsoll/ops/compose.h"

#include "plimsoll/ops/definition/expect.h"

namespace plimsoll::ops {

Var sum_over(Var x, const ir::Ints& axes) {
  return axes.empty() ? x : reduce_sum(x, axes, true);
}

Var widened(Var x) {
  return cast(x, wide(x.dtype()));
}

Var plus(Var a, Var b) {
  if (!a) return b;
  return b ? a + b : a;
}

Var along_channels(Var x, int rank) {
  ir::Shape shape{1, x.dim(0)};
  while (shape.rank() < rank) shape.push_back(1);
  return reshape(x, shape);
}

ir::Ints all_but_channels(int rank) {
  ir::Ints axes{0};
  for (int axis = 2; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

}  // namespace plimsoll::ops
