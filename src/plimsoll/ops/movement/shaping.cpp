#include "plimsoll/ops/movement/shaping.h"

#include "plimsoll/ops/definition/rules.h"

namespace plimsoll::ops {
namespace {

ir::Ints dims_of(const ir::Shape& shape) {
  return ir::Ints(shape.begin(), shape.end());
}

}  // namespace

Var reshape(Var x, ir::Shape shape) {
  if (x.shape() == shape) return x;
  return x.builder().call1("reshape", {x}, {{"shape", dims_of(shape)}});
}

Var squeeze(Var x, int axis) {
  ir::Ints dims = dims_of(x.shape());
  const auto normal = normal_axis(axis, x.rank());
  if (!normal || dims[static_cast<std::size_t>(*normal)] != 1) {
    x.builder().fail(
        fmt::format("squeeze: axis {} of {} is none of extent 1", axis, ir::to_string(x.shape())));
    return x;
  }
  dims.erase(dims.begin() + *normal);
  return reshape(x, ir::Shape(dims));
}

Var unsqueeze(Var x, int axis) {
  ir::Ints dims = dims_of(x.shape());
  const auto normal = normal_axis(axis, x.rank() + 1);
  if (!normal || x.rank() == ir::kMaxRank) {
    x.builder().fail(fmt::format("unsqueeze: no axis {} in {}", axis, ir::to_string(x.shape())));
    return x;
  }
  dims.insert(dims.begin() + *normal, 1);
  return reshape(x, ir::Shape(dims));
}

Var flatten(Var x, int axis) {
  ir::Shape shape;
  for (int i = 0; i < axis; ++i) shape.push_back(x.dim(i));
  shape.push_back(x.shape().elements(axis, x.rank()));
  return reshape(x, shape);
}

Var transpose(Var x, const ir::Ints& perm) {
  return x.builder().call1("transpose", {x}, {{"perm", perm}});
}

Var expand(Var x, ir::Shape shape) {
  if (x.shape() == shape) return x;
  return x.builder().call1("expand", {x}, {{"shape", dims_of(shape)}});
}

Var tile(Var x, const ir::Ints& repeats) {
  return x.builder().call1("tile", {x}, {{"repeats", repeats}});
}

Var triangle(Var x, bool upper, std::int64_t diagonal) {
  return x.builder().call1("triangle", {x},
                           {{"upper", std::int64_t{upper}}, {"diagonal", diagonal}});
}

Var reorder(Var x, const ir::Layout& layout) {
  if (x.type().layout == layout) return x;
  return x.builder().call1("reorder", {x}, {{"layout", ir::to_string(layout)}});
}

}  // namespace plimsoll::ops
