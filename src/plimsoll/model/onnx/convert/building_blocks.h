// The phrases converters say most often.
#pragma once

#include <string_view>
#include <vector>

#include "plimsoll/model/onnx/convert/operator_call.h"

namespace plimsoll::model::onnx {

// x itself when it has the dtype.
Var cast_to(Var x, ir::DType dtype);
// x itself when it has the shape.
Var reshape_to(Var x, const ir::Ints& shape);
Var transpose_by(Var x, const ir::Ints& perm);
Var expand_to(Var x, const ir::Ints& shape);
// [start, end) of one axis.
Var slice_axis(Var x, int axis, std::int64_t start, std::int64_t end);
// One index of an axis, without the axis.
Var select(Var x, int axis, std::int64_t index);
Var concat_all(const std::vector<Var>& xs, int axis);
Var reduce(std::string_view op, Var x, const ir::Ints& axes, bool keepdims);
Var unary_call(std::string_view op, Var x);
// 0, 1, 2, ... along one axis, as 64-bit integers.
Var counted(Builder& builder, const ir::Ints& shape, int axis);

ir::Ints dims_of(const ir::Shape& shape);
ir::Ints range(std::int64_t begin, std::int64_t end);

// Each in [-rank, rank) as one in [0, rank), sorted; an error for one outside or twice.
Result<ir::Ints> normal_axes(const ir::Ints& axes, int rank);
Result<int> normal_axis_of(std::int64_t axis, int rank);

// Indices known at import must lie in [-extent, extent); a run could not say so.
Status check_indices(const Array* indices, std::int64_t extent);

}  // namespace plimsoll::model::onnx
