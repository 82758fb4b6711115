// Small integers that stand for real numbers: (q − zero)·scale.
#pragma once

#include "plimsoll/model/onnx/convert/operator_call.h"

namespace plimsoll::model::onnx {

// round(x / scale) + zero, held to what the dtype can hold.
Var quantized(Var x, Var scale, Var zero, ir::DType dtype);
// A tensor as bytes that just span its values and zero.
struct ByteQuantized {
  Var numbers;
  Var scale;
  Var zero;
};
ByteQuantized quantized_to_bytes(Var x);
// An integer operand less its zero point, as real numbers: sums of products of bytes stay exact in
// a double.
Var centred(Var x, Var zero);
// A zero point per row of a matrix stands as a column.
Var per_row(Var zero, int rank);

}  // namespace plimsoll::model::onnx
