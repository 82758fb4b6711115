#include "plimsoll/model/onnx/convert/building_blocks.h"

#include <algorithm>

namespace plimsoll::model::onnx {
namespace {

// After an error shapes mean nothing any more; a file may give any rank.
bool has_axis(Var x, int axis) {
  if (x.builder().error()) return false;
  if (axis < x.rank()) return true;
  x.builder().fail(fmt::format("{} has no axis {}", ir::to_string(x.shape()), axis));
  return false;
}

}  // namespace

Var cast_to(Var x, ir::DType dtype) {
  if (x.dtype() == dtype) return x;
  return x.builder().call1("cast", {x}, {{"to", std::string(ir::name(dtype))}});
}

Var reshape_to(Var x, const ir::Ints& shape) {
  if (dims_of(x.shape()) == shape) return x;
  return x.builder().call1("reshape", {x}, {{"shape", shape}});
}

Var transpose_by(Var x, const ir::Ints& perm) {
  if (std::is_sorted(perm.begin(), perm.end()) && static_cast<int>(perm.size()) == x.rank())
    return x;
  return x.builder().call1("transpose", {x}, {{"perm", perm}});
}

Var expand_to(Var x, const ir::Ints& shape) {
  if (dims_of(x.shape()) == shape) return x;
  return x.builder().call1("expand", {x}, {{"shape", shape}});
}

Var slice_axis(Var x, int axis, std::int64_t start, std::int64_t end) {
  if (!has_axis(x, axis) || (start == 0 && end == x.dim(axis))) return x;
  ir::Ints starts(static_cast<std::size_t>(x.rank()), 0);
  ir::Ints ends = dims_of(x.shape());
  starts[static_cast<std::size_t>(axis)] = start;
  ends[static_cast<std::size_t>(axis)] = end;
  return x.builder().call1(
      "slice", {x}, {{"starts", starts}, {"ends", ends}, {"steps", ir::Ints(starts.size(), 1)}});
}

Var select(Var x, int axis, std::int64_t index) {
  if (!has_axis(x, axis)) return x;
  ir::Ints shape = dims_of(x.shape());
  shape.erase(shape.begin() + axis);
  return reshape_to(slice_axis(x, axis, index, index + 1), shape);
}

Var concat_all(const std::vector<Var>& xs, int axis) {
  if (xs.size() == 1) return xs.front();
  return xs.front().builder().call1("concat", xs, {{"axis", std::int64_t{axis}}});
}

Var reduce(std::string_view op, Var x, const ir::Ints& axes, bool keepdims) {
  return x.builder().call1(op, {x}, {{"axes", axes}, {"keepdims", std::int64_t{keepdims}}});
}

Var unary_call(std::string_view op, Var x) {
  return x.builder().call1(op, {x});
}

Var counted(Builder& builder, const ir::Ints& shape, int axis) {
  return builder.call1(
      "iota", {},
      {{"shape", shape}, {"dtype", std::string("int64")}, {"axis", std::int64_t{axis}}});
}

ir::Ints dims_of(const ir::Shape& shape) {
  return {shape.begin(), shape.end()};
}

ir::Ints range(std::int64_t begin, std::int64_t end) {
  ir::Ints out;
  for (std::int64_t i = begin; i < end; ++i) out.push_back(i);
  return out;
}

Result<int> normal_axis_of(std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    return bad_input("axis {} is outside a tensor of rank {}", axis, rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

Result<ir::Ints> normal_axes(const ir::Ints& axes, int rank) {
  ir::Ints out;
  for (const std::int64_t axis : axes) {
    PLIMSOLL_TRY(const int normal, normal_axis_of(axis, rank));
    out.push_back(normal);
  }
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end())
    return bad_input("an axis is named twice");
  return out;
}

Status check_indices(const Array* indices, std::int64_t extent) {
  if (indices == nullptr) return {};
  for (const std::int64_t index : indices->integers) {
    if (index < -extent || index >= extent)
      return bad_input("index {} is outside an extent of {}", index, extent);
  }
  return {};
}

}  // namespace plimsoll::model::onnx
