// Quantised operators, in terms of what they stand for: real numbers and a rounding.
#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"
#include "plimsoll/model/onnx/convert/quantized_numbers.h"
#include "plimsoll/model/onnx/convert/window_attributes.h"

namespace plimsoll::model::onnx {
namespace {

using ir::DType;

// Scale or zero point (one number, one per index of the axis, or one per block of it) as a tensor
// that broadcasts with x.
Result<Var> along_axis(Var v, const ir::Shape& x, std::int64_t axis_given, std::int64_t block) {
  if (!v || v.shape().elements() == 1) return v ? reshape_to(v, {}) : v;
  PLIMSOLL_TRY(const int axis, normal_axis_of(axis_given, x.rank()));
  ir::Ints shape(static_cast<std::size_t>(x.rank()), 1);
  if (v.rank() == 1) {
    shape[static_cast<std::size_t>(axis)] = v.dim(0);
    return reshape_to(v, shape);
  }
  if (block < 1 || v.rank() != x.rank() || v.dim(axis) * block < x[axis] || v.dim(axis) > x[axis] ||
      x.rank() >= ir::kMaxRank || block > (1LL << 31)) {
    return bad_input("a scale of {} does not fit {}", ir::to_string(v.shape()), ir::to_string(x));
  }
  // Every number stands for a block of the axis.
  ir::Ints split = dims_of(v.shape());
  split.insert(split.begin() + axis + 1, 1);
  ir::Ints wide = split;
  wide[static_cast<std::size_t>(axis) + 1] = block;
  ir::Ints joined = dims_of(v.shape());
  joined[static_cast<std::size_t>(axis)] *= block;
  const Var repeated = reshape_to(expand_to(reshape_to(v, split), wide), joined);
  return slice_axis(repeated, axis, 0, x[axis]);
}

Status quantize_linear(OperatorCall& call) {
  const std::int64_t axis = call.integer("axis", 1);
  const std::int64_t block = call.integer("block_size", 0);
  DType dtype = DType::kU8;
  if (call.has(2))
    dtype = call.dtype(2);
  else if (call.integer("output_dtype", 0) != 0) {
    PLIMSOLL_TRY(dtype, call.attribute_dtype("output_dtype", ElementType::kUint8));
  }
  Var x = call.in(0);
  if (!ir::is_float(x.dtype())) x = cast_to(x, DType::kF32);
  PLIMSOLL_TRY(const Var scale, along_axis(call.in(1), call.shape(0), axis, block));
  PLIMSOLL_TRY(const Var zero, along_axis(call.maybe(2), call.shape(0), axis, block));
  if (!scale) return bad_input("its scale is missing");
  return call.done(quantized(x, scale, zero, dtype));
}

Status dequantize_linear(OperatorCall& call) {
  const std::int64_t axis = call.integer("axis", 1);
  const std::int64_t block = call.integer("block_size", 0);
  PLIMSOLL_TRY(const Var scale, along_axis(call.in(1), call.shape(0), axis, block));
  PLIMSOLL_TRY(const Var zero, along_axis(call.maybe(2), call.shape(0), axis, block));
  if (!scale) return bad_input("its scale is missing");
  DType dtype = scale.dtype();
  if (call.integer("output_dtype", 0) != 0) {
    PLIMSOLL_TRY(dtype, call.attribute_dtype("output_dtype", ElementType::kFloat));
  }
  Var x = cast_to(call.in(0), DType::kF32);
  if (zero && !ir::is_float(zero.dtype())) x = x - cast_to(zero, DType::kF32);
  return call.done(cast_to(x * cast_to(scale, DType::kF32), dtype));
}

Status dynamic_quantize_linear(OperatorCall& call) {
  const ByteQuantized y = quantized_to_bytes(call.in(0));
  call.out(0, y.numbers);
  call.out(1, y.scale);
  call.out(2, y.zero);
  return {};
}

Status matmul_integer(OperatorCall& call) {
  const Var a = centred(call.in(0), per_row(call.maybe(2), call.rank(0)));
  const Var b = centred(call.in(1), call.maybe(3));
  if (a.rank() < 2 || b.rank() < 2) return bad_input("its operands are not of rank 2");
  return call.done(cast_to(call.builder().call1("matmul", {a, b}), DType::kI32));
}

Status qlinear_matmul(OperatorCall& call) {
  PLIMSOLL_RETURN_IF_ERROR(call.need({0, 1, 2, 3, 4, 5, 6, 7}));
  const Var a = centred(call.in(0), per_row(call.maybe(2), call.rank(0)));
  const Var b = centred(call.in(3), call.in(5));
  if (a.rank() < 2 || b.rank() < 2) return bad_input("its operands are not of rank 2");
  const Var product = call.builder().call1("matmul", {a, b});
  const auto real = [&](int i) { return cast_to(call.in(i), DType::kF64); };
  const Var scaled = product * (per_row(real(1), call.rank(0)) * real(4));
  return call.done(quantized(scaled, real(6), call.in(7), call.dtype(7)));
}

Result<Var> integer_conv(OperatorCall& call, Var x, Var w, const ir::Shape& weight) {
  if (weight.rank() < 3)
    return bad_input("its weight has rank {}, expects at least 3", weight.rank());
  const ir::Ints kernel(weight.begin() + 2, weight.end());
  PLIMSOLL_TRY(const WindowAttributes window, window_attributes(call, x.shape(), kernel));
  return call.builder().call1("conv", {x, w},
                              convolution_attributes(window, call.integer("group", 1)));
}

// A zero point or scale per output channel, placed along `axis` of a tensor of this rank.
Var per_channel(Var v, int rank, int axis) {
  if (!v || v.shape().elements() == 1) return v ? reshape_to(v, {}) : v;
  ir::Ints shape(static_cast<std::size_t>(rank), 1);
  shape[static_cast<std::size_t>(axis)] = v.shape().elements();
  return reshape_to(v, shape);
}

Status conv_integer(OperatorCall& call) {
  if (!call.has(0) || !call.has(1)) return bad_input("its input or weight is missing");
  const Var x = centred(call.in(0), call.maybe(2));
  const Var w = centred(call.in(1), per_channel(call.maybe(3), call.rank(1), 0));
  PLIMSOLL_TRY(const Var y, integer_conv(call, x, w, call.shape(1)));
  return call.done(cast_to(y, DType::kI32));
}

Status qlinear_conv(OperatorCall& call) {
  PLIMSOLL_RETURN_IF_ERROR(call.need({0, 1, 2, 3, 4, 5, 6, 7}));
  const int rank = call.rank(0);
  const Var x = centred(call.in(0), call.in(2));
  const Var w = centred(call.in(3), per_channel(call.in(5), call.rank(3), 0));
  PLIMSOLL_TRY(Var y, integer_conv(call, x, w, call.shape(3)));
  if (call.has(8)) y = y + per_channel(cast_to(call.in(8), DType::kF64), rank, 1);
  const auto real = [&](int i) { return cast_to(call.in(i), DType::kF64); };
  const Var scaled = y * (real(1) * per_channel(real(4), rank, 1));
  return call.done(quantized(scaled, real(6), call.in(7), call.dtype(7)));
}

}  // namespace

std::vector<Operator> quantization_operators() {
  return {
      {"QuantizeLinear", quantize_linear, "axis block_size output_dtype precision saturate"},
      {"DequantizeLinear", dequantize_linear, "axis block_size output_dtype"},
      {"DynamicQuantizeLinear", dynamic_quantize_linear},
      {"MatMulInteger", matmul_integer},
      {"QLinearMatMul", qlinear_matmul},
      {"ConvInteger", conv_integer, "auto_pad dilations group kernel_shape pads strides"},
      {"QLinearConv", qlinear_conv, "auto_pad dilations group kernel_shape pads strides"},
  };
}

}  // namespace plimsoll::model::onnx
