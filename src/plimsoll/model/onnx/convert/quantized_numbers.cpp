#include "plimsoll/model/onnx/convert/quantized_numbers.h"

#include <cmath>

#include "plimsoll/model/onnx/convert/building_blocks.h"

namespace plimsoll::model::onnx {

using ir::DType;

namespace {

struct Span {
  double low;
  double high;
};

Span span_of(DType dtype) {
  const double half = std::ldexp(1.0, ir::bits(dtype) - 1);
  if (dtype == DType::kF8E4M3) return {-448, 448};
  if (dtype == DType::kF8E5M2) return {-57344, 57344};
  return ir::is_signed_integer(dtype) ? Span{-half, half - 1} : Span{0, 2 * half - 1};
}

}  // namespace

Var quantized(Var x, Var scale, Var zero, DType dtype) {
  Builder& builder = x.builder();
  Var y = x / cast_to(scale, x.dtype());
  if (!ir::is_float(dtype)) y = unary_call("round", y);
  if (zero && !ir::is_float(dtype)) y = y + cast_to(zero, x.dtype());
  const Span span = span_of(dtype);
  if (ir::is_float(dtype))
    return cast_to(builder.call1("clip", {y}, {{"min", span.low}, {"max", span.high}}), dtype);
  // NaN becomes the lowest number, as in onnxruntime: rows that a mask hides whole are NaN in
  // exported attention, and what should make zeros of them comes behind the rounding.
  const Var low = ops::number(y, span.low);
  y = ops::where(builder.call1("greater_equal", {y, low}), y, low);
  return cast_to(builder.call1("clip", {y}, {{"max", span.high}}), dtype);
}

ByteQuantized quantized_to_bytes(Var x) {
  Builder& builder = x.builder();
  const ir::Ints all = range(0, x.rank());
  const Var zero = ops::number(x, 0);
  const Var high = builder.call1("maximum", {reduce("reduce_max", x, all, false), zero});
  const Var low = builder.call1("minimum", {reduce("reduce_min", x, all, false), zero});
  const Var scale = (high - low) / 255.0;
  const Var point = unary_call("round", builder.call1("clip", {unary_call("neg", low) / scale},
                                                      {{"min", 0.0}, {"max", 255.0}}));
  const Var zero_point = cast_to(point, DType::kU8);
  return {quantized(x, scale, zero_point, DType::kU8), scale, zero_point};
}

Var centred(Var x, Var zero) {
  x = cast_to(x, DType::kF64);
  return zero ? x - cast_to(zero, DType::kF64) : x;
}

Var per_row(Var zero, int rank) {
  if (!zero || zero.rank() != 1 || zero.dim(0) == 1 || rank < 2) return zero;
  return reshape_to(zero, {zero.dim(0), 1});
}

}  // namespace plimsoll::model::onnx
