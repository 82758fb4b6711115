// The type and cost rules that many definitions share.
#pragma once

#include "plimsoll/ops/op_definition.h"

namespace plimsoll::ops {

// Element by element: rows are all axes but the last, or the outermost one where an input is
// broadcast along it; nothing where an input is broadcast along others but not along that.
std::optional<Split> split_elements(const Call& call, std::span<const TensorType> outputs);

// The type of input 0.
Result<std::vector<TensorType>> same_as_first(const Call& call);
// The same, and the dtype must be a float.
Result<std::vector<TensorType>> same_as_first_float(const Call& call);
// All inputs of one dtype; the broadcast of their shapes.
Result<std::vector<TensorType>> broadcast_all(const Call& call);

inline double element_count(const ir::Shape& shape) {
  return static_cast<double>(shape.elements());
}
// One operation for each element of output 0; every tensor touched once.
Cost elementwise_cost(const Call& call, std::span<const TensorType> outputs);
// Bytes of everything read and written, no arithmetic.
Cost bytes_cost(const Call& call, std::span<const TensorType> outputs);
// The same with this many operations.
Cost cost_with(double operations, const Call& call, std::span<const TensorType> outputs);
// Several operations for each element of output 0.
template <int kOperations>
Cost cost_per_element(const Call& call, std::span<const TensorType> outputs) {
  return cost_with(kOperations * element_count(outputs[0].shape), call, outputs);
}
// Several operations for each element of input 0.
template <int kOperations>
Cost cost_per_input(const Call& call, std::span<const TensorType> outputs) {
  return cost_with(kOperations * element_count(call.shape(0)), call, outputs);
}
// Nothing happens.
Cost no_cost(const Call& call, std::span<const TensorType> outputs);

// axis in [-rank, rank) as one in [0, rank); an error that names both otherwise.
Result<int> normal_axis(std::int64_t axis, int rank);

// The attribute "axis" of a call that was verified, as one in [0, rank).
int verified_axis(const AttributeReader& attributes, const ir::Shape& shape);

// Calls body(index of output element, index of each input's element) for inputs broadcast to the
// output's shape.
template <typename Body>
void for_each_broadcast(const ir::Shape& out, const ir::Shape& a, const ir::Shape& b, Body body);

}  // namespace plimsoll::ops

#include "plimsoll/ops/definition/rules_inl.h"
