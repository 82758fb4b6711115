#include "plimsoll/ops/reduction/reduction.h"

#include "plimsoll/ops/movement/shaping.h"

namespace plimsoll::ops {
namespace {

Var reduce(std::string_view op, Var x, const ir::Ints& axes, bool keepdims) {
  return x.builder().call1(op, {x}, {{"axes", axes}, {"keepdims", std::int64_t{keepdims}}});
}

}  // namespace

Var reduce_sum(Var x, const ir::Ints& axes, bool keepdims) {
  return reduce("reduce_sum", x, axes, keepdims);
}
Var reduce_mean(Var x, const ir::Ints& axes, bool keepdims) {
  return reduce("reduce_mean", x, axes, keepdims);
}
Var reduce_max(Var x, const ir::Ints& axes, bool keepdims) {
  return reduce("reduce_max", x, axes, keepdims);
}
Var reduce_min(Var x, const ir::Ints& axes, bool keepdims) {
  return reduce("reduce_min", x, axes, keepdims);
}
Var reduce_prod(Var x, const ir::Ints& axes, bool keepdims) {
  return reduce("reduce_prod", x, axes, keepdims);
}
Var sum(Var x) {
  return x.builder().call1("reduce_sum", {x});
}
Var mean(Var x) {
  return x.builder().call1("reduce_mean", {x});
}

Var sum_to(Var adjoint, ir::Shape shape) {
  if (adjoint.shape() == shape) return adjoint;
  const int shift = adjoint.rank() - shape.rank();
  ir::Ints axes;
  for (int axis = 0; axis < adjoint.rank(); ++axis) {
    if (axis < shift || (shape[axis - shift] == 1 && adjoint.dim(axis) != 1)) axes.push_back(axis);
  }
  const Var sum = axes.empty() ? adjoint : reduce_sum(adjoint, axes, true);
  return sum.shape() == shape ? sum : reshape(sum, shape);
}

}  // namespace plimsoll::ops
