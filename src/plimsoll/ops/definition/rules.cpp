#include "plimsoll/ops/definition/rules.h"

#include <algorithm>

namespace plimsoll::ops {
namespace {

double bytes(const TensorType& type) {
  return static_cast<double>(ir::bytes_of(type).value);
}

}  // namespace

Result<std::vector<TensorType>> same_as_first(const Call& call) {
  return std::vector{call.type(0)};
}

Result<std::vector<TensorType>> same_as_first_float(const Call& call) {
  if (!ir::is_float(call.type(0).dtype)) {
    return bad_input("input is {}, expects a float", ir::name(call.type(0).dtype));
  }
  return std::vector{call.type(0)};
}

Result<std::vector<TensorType>> broadcast_all(const Call& call) {
  TensorType out = call.type(0);
  for (int i = 1; i < call.size(); ++i) {
    if (call.type(i).dtype != out.dtype) {
      return bad_input("inputs are {} and {}, expects one dtype; cast one of them",
                       ir::name(out.dtype), ir::name(call.type(i).dtype));
    }
    const auto shape = ir::broadcast(out.shape, call.shape(i));
    if (!shape) {
      return bad_input("shapes {} and {} do not broadcast", ir::to_string(out.shape),
                       ir::to_string(call.shape(i)));
    }
    if (*shape != out.shape) out.layout = call.type(i).layout;
    out.shape = *shape;
  }
  if (!ir::fits(out.layout, out.shape)) out.layout = {};
  return std::vector{out};
}

Cost bytes_cost(const Call& call, std::span<const TensorType> outputs) {
  Cost cost;
  for (int i = 0; i < call.size(); ++i) {
    if (call.has(i)) cost.bytes_read += bytes(call.type(i));
  }
  for (const TensorType& type : outputs) cost.bytes_written += bytes(type);
  return cost;
}

Cost cost_with(double operations, const Call& call, std::span<const TensorType> outputs) {
  Cost cost = bytes_cost(call, outputs);
  cost.operations = operations;
  return cost;
}

Cost elementwise_cost(const Call& call, std::span<const TensorType> outputs) {
  return cost_per_element<1>(call, outputs);
}

Cost no_cost(const Call&, std::span<const TensorType>) {
  return {};
}

Result<int> normal_axis(std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) return bad_input("axis {} is outside a rank of {}", axis, rank);
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

int verified_axis(const AttributeReader& attributes, const ir::Shape& shape) {
  const auto axis = normal_axis(attributes.integer("axis"), shape.rank());
  PLIMSOLL_CHECK(axis.has_value());
  return *axis;
}

std::optional<Split> split_elements(const Call& call, std::span<const TensorType> outputs) {
  const ir::Shape& shape = outputs.front().shape;
  if (shape.rank() == 0) return std::nullopt;
  Split out;
  out.rows = shape.elements(0, std::max(1, shape.rank() - 1));
  for (int i = 0; i < call.size(); ++i) {
    if (!call.has(i)) return std::nullopt;
    const ir::Shape& input = call.shape(i);
    const bool whole = input != shape;
    if (whole && input.rank() == shape.rank() && input[0] != 1) return std::nullopt;
    if (whole) out.rows = shape[0];
    out.inputs.push_back(whole ? Split::Input::kWhole : Split::Input::kCut);
  }
  for (const TensorType& made : outputs) {
    if (made.shape != shape) return std::nullopt;
    out.outputs.push_back(Split::Output::kCut);
  }
  if (std::ranges::count(out.inputs, Split::Input::kCut) == 0) return std::nullopt;
  return out;
}

}  // namespace plimsoll::ops
