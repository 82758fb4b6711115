#include "plimsoll/ops/compose.h"

#include "plimsoll/ops/expect.h"

namespace plimsoll::ops {
namespace {

ir::Ints ints(const ir::Shape& shape) { return {shape.begin(), shape.end()}; }

}  // namespace

Var apply(std::string_view op, Var x) { return x.builder().call1(op, {x}); }

Var sum_over(Var x, const ir::Ints& axes) {
  if (axes.empty()) return x;
  return x.builder().call1("reduce_sum", {x}, {{"axes", axes}, {"keepdims", std::int64_t{1}}});
}

Var with_shape(Var x, const ir::Shape& shape) {
  if (x.shape() == shape) return x;
  return x.builder().call1("reshape", {x}, {{"shape", ints(shape)}});
}

Var permuted(Var x, const ir::Ints& perm) {
  return x.builder().call1("transpose", {x}, {{"perm", perm}});
}

Var spread(Var x, const ir::Shape& shape) {
  if (x.shape() == shape) return x;
  return x.builder().call1("expand", {x}, {{"shape", ints(shape)}});
}

Var cast_to(Var x, ir::DType dtype) {
  if (x.dtype() == dtype) return x;
  return x.builder().call1("cast", {x}, {{"to", std::string(ir::name(dtype))}});
}

Var widened(Var x) { return cast_to(x, wide(x.dtype())); }

Var part(Var x, int axis, std::int64_t begin, std::int64_t end) {
  const auto rank = static_cast<std::size_t>(x.rank());
  ir::Ints starts(rank, 0);
  ir::Ints ends = ints(x.shape());
  if (axis < x.rank()) {  // a placeholder after an error has no such axis
    starts[static_cast<std::size_t>(axis)] = begin;
    ends[static_cast<std::size_t>(axis)] = end;
  }
  return x.builder().call1("slice", {x}, {{"starts", starts}, {"ends", ends}, {"steps", ir::Ints(rank, 1)}});
}

Var joined(std::vector<Var> parts, int axis) {
  Builder& builder = parts.front().builder();
  return builder.call1("concat", std::move(parts), {{"axis", std::int64_t{axis}}});
}

Var plus(Var a, Var b) {
  if (!a) return b;
  return b ? a + b : a;
}

Var along_channels(Var x, int rank) {
  ir::Shape shape{1, x.dim(0)};
  while (shape.rank() < rank) shape.push_back(1);
  return with_shape(x, shape);
}

ir::Ints all_but_channels(int rank) {
  ir::Ints axes{0};
  for (int axis = 2; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

}  // namespace plimsoll::ops
