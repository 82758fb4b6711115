// Quantised operators of com.microsoft: real numbers in, the operator, a rounding out.
#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"
#include "plimsoll/model/onnx/convert/quantized_numbers.h"
#include "plimsoll/model/onnx/convert/window_attributes.h"

namespace plimsoll::model::onnx {
namespace {

using ir::DType;

// Three inputs in a row: numbers, scale, zero point.
Var real_number(OperatorCall& call, int at) {
  return centred(call.in(at), call.maybe(at + 2)) * cast_to(call.in(at + 1), DType::kF64);
}

// The result, by the scale and zero point that begin at input `at`.
Var rounded(OperatorCall& call, Var y, int at) {
  const DType dtype = call.has(at + 1) ? call.dtype(at + 1) : call.dtype(0);
  return quantized(y, cast_to(call.in(at), DType::kF64), call.maybe(at + 1), dtype);
}

Status qlinear_binary(OperatorCall& call) {
  PLIMSOLL_RETURN_IF_ERROR(call.need({0, 1, 3, 4, 6}));
  const Var y = call.builder().call1(call.target(), {real_number(call, 0), real_number(call, 3)});
  return call.done(rounded(call, y, 6));
}

Status qlinear_sigmoid(OperatorCall& call) {
  PLIMSOLL_RETURN_IF_ERROR(call.need({0, 1, 3}));
  return call.done(rounded(call, unary_call("sigmoid", real_number(call, 0)), 3));
}

Status qlinear_leaky_relu(OperatorCall& call) {
  PLIMSOLL_RETURN_IF_ERROR(call.need({0, 1, 3}));
  const Var y = call.builder().call1("leaky_relu", {real_number(call, 0)},
                                     {{"alpha", call.real("alpha", 0.01F)}});
  return call.done(rounded(call, y, 3));
}

Status qlinear_global_average_pool(OperatorCall& call) {
  PLIMSOLL_RETURN_IF_ERROR(call.need({0, 1, 3}));
  const int rank = call.rank(0);
  if (rank < 3) return bad_input("its input has rank {}, expects at least 3", rank);
  const ir::Ints axes = call.integer("channels_last", 0) != 0 ? range(1, rank - 1) : range(2, rank);
  return call.done(rounded(call, reduce("reduce_mean", real_number(call, 0), axes, true), 3));
}

Status qlinear_average_pool(OperatorCall& call) {
  PLIMSOLL_RETURN_IF_ERROR(call.need({0, 1, 3}));
  if (call.integer("channels_last", 0) != 0) return bad_input("channels_last is not supported");
  if (!call.has_attribute("kernel_shape")) return bad_input("kernel_shape is missing");
  PLIMSOLL_TRY(const WindowAttributes window,
               window_attributes(call, call.shape(0), call.integers("kernel_shape")));
  const Var y = call.builder().call1("avg_pool", {real_number(call, 0)},
                                     {{"kernel", window.kernel},
                                      {"strides", window.strides},
                                      {"pads", window.pads},
                                      {"ceil_mode", std::int64_t{window.ceil_mode}},
                                      {"count_include_pad", call.integer("count_include_pad", 0)}});
  return call.done(rounded(call, y, 3));
}

// Before operator set 13 it is over all axes from `axis` on.
Status qlinear_softmax(OperatorCall& call) {
  PLIMSOLL_RETURN_IF_ERROR(call.need({0, 1, 3}));
  const bool flat = call.integer("opset", 13) < 13;
  const Var x = real_number(call, 0);
  if (call.builder().error()) return {};
  PLIMSOLL_TRY(const int axis, normal_axis_of(call.integer("axis", flat ? 1 : -1), x.rank()));
  const ir::Ints shape = dims_of(x.shape());
  const Var rows =
      flat ? reshape_to(x, {x.shape().elements(0, axis), x.shape().elements(axis, x.rank())}) : x;
  const Var y = call.builder().call1("softmax", {rows}, {{"axis", std::int64_t{flat ? 1 : axis}}});
  return call.done(rounded(call, reshape_to(y, shape), 3));
}

// The result's scale and zero point come first, then three inputs for each part.
Status qlinear_concat(OperatorCall& call) {
  if (call.inputs() < 5 || (call.inputs() - 2) % 3 != 0)
    return bad_input("it has {} inputs", call.inputs());
  PLIMSOLL_TRY(const int axis, normal_axis_of(call.integer("axis", 0), call.rank(2)));
  std::vector<Var> parts;
  for (int i = 2; i < call.inputs(); i += 3) {
    PLIMSOLL_RETURN_IF_ERROR(call.need({i, i + 1, i + 2}));
    parts.push_back(real_number(call, i));
  }
  PLIMSOLL_RETURN_IF_ERROR(call.need({0, 1}));
  return call.done(rounded(call, concat_all(parts, axis), 0));
}

Status qgemm(OperatorCall& call) {
  PLIMSOLL_RETURN_IF_ERROR(call.need({0, 1, 2, 3, 4, 5}));
  if (call.rank(0) != 2 || call.rank(3) != 2) return bad_input("its factors are not of rank 2");
  const Var a = centred(call.in(0), call.in(2));
  const Var b = centred(call.in(3), call.in(5));
  Var y = call.builder().call1(
      "matmul", {a, b},
      {{"trans_a", call.integer("transA", 0)}, {"trans_b", call.integer("transB", 0)}});
  const Var scale = cast_to(call.in(1), DType::kF64) * cast_to(call.in(4), DType::kF64);
  if (call.has(6)) y = y + cast_to(call.in(6), DType::kF64);
  y = y * scale * call.real("alpha", 1);
  return call.done(call.has(7) ? rounded(call, y, 7) : cast_to(y, DType::kF32));
}

// a[uint8] times b[int8 or uint8], each with its scale, as real numbers.
Var scaled_product(OperatorCall& call, Var a, Var a_scale, int b, int b_scale, int b_zero,
                   int bias) {
  const Var product = call.builder().call1("matmul", {a, centred(call.in(b), call.maybe(b_zero))});
  Var y =
      cast_to(product * (cast_to(a_scale, DType::kF64) * cast_to(call.in(b_scale), DType::kF64)),
              DType::kF32);
  if (call.has(bias)) y = y + call.in(bias);
  return y;
}

Status matmul_integer_to_float(OperatorCall& call) {
  PLIMSOLL_RETURN_IF_ERROR(call.need({0, 1, 2, 3}));
  if (call.rank(0) < 2 || call.rank(1) < 2) return bad_input("its factors are not of rank 2");
  const Var a = centred(call.in(0), per_row(call.maybe(4), call.rank(0)));
  return call.done(scaled_product(call, a, per_row(call.in(2), call.rank(0)), 1, 3, 5, 6));
}

// The first factor is quantised to a byte by its own extent, as DynamicQuantizeLinear does.
Status dynamic_quantize_matmul(OperatorCall& call) {
  PLIMSOLL_RETURN_IF_ERROR(call.need({0, 1, 2}));
  if (call.rank(0) < 2 || call.rank(1) < 2) return bad_input("its factors are not of rank 2");
  const ByteQuantized a = quantized_to_bytes(call.in(0));
  return call.done(scaled_product(call, centred(a.numbers, a.zero), a.scale, 1, 2, 3, 4));
}

// Weights of 4 or 8 bits in blocks along K: [N, blocks, bytes], the low half of a byte first. A
// block has a scale and a zero point, which without one is the middle of the range.
struct Blocks {
  std::int64_t n, k, bits, size;
  std::int64_t count() const { return (k + size - 1) / size; }
  std::int64_t per_byte() const { return 8 / bits; }
};

// Bytes [.., m] as numbers [.., m·per_byte], as floats.
Var unpacked(Var bytes, const Blocks& blocks, DType dtype) {
  if (blocks.bits == 8) return cast_to(bytes, dtype);
  Builder& builder = bytes.builder();
  ir::Ints shape = dims_of(bytes.shape());
  shape.push_back(1);
  const Var low = builder.call1("bit_and", {bytes, ops::number(bytes, 15)});
  const Var high = builder.call1("bit_shift", {bytes, ops::number(bytes, 4)},
                                 {{"direction", std::string("right")}});
  const Var both = concat_all({reshape_to(low, shape), reshape_to(high, shape)},
                              static_cast<int>(shape.size()) - 1);
  shape.pop_back();
  shape.back() *= 2;
  return cast_to(reshape_to(both, shape), dtype);
}

Result<Blocks> blocks_of(OperatorCall& call) {
  const Blocks b{call.integer("N", 0), call.integer("K", 0), call.integer("bits", 4),
                 call.integer("block_size", 0)};
  constexpr std::int64_t kMost = 1LL << 31;
  if (b.n < 1 || b.k < 1 || b.n > kMost || b.k > kMost || b.size < 16 || b.size > kMost ||
      (b.bits != 4 && b.bits != 8)) {
    return bad_input("{} by {} numbers of {} bits in blocks of {} are not supported", b.n, b.k,
                     b.bits, b.size);
  }
  if (call.has(4) || (call.has(3) && call.dtype(3) != DType::kU8) || call.dtype(1) != DType::kU8)
    return bad_input("reordered weights and real zero points are not supported");
  if (call.shape(1).elements() != b.n * b.count() * (b.size / b.per_byte()) ||
      call.shape(2).elements() != b.n * b.count()) {
    return bad_input("its weight {} or scales {} have the wrong size", ir::to_string(call.shape(1)),
                     ir::to_string(call.shape(2)));
  }
  return b;
}

Status matmul_nbits(OperatorCall& call) {
  PLIMSOLL_RETURN_IF_ERROR(call.need({0, 1, 2}));
  PLIMSOLL_TRY(const Blocks b, blocks_of(call));
  const DType dtype = call.dtype(0);
  const Var packed = reshape_to(call.in(1), {b.n, b.count(), b.size / b.per_byte()});
  const Var scale = reshape_to(cast_to(call.in(2), dtype), {b.n, b.count(), 1});
  Var w = unpacked(packed, b, dtype);
  if (call.has(3)) {
    const std::int64_t row = (b.count() + b.per_byte() - 1) / b.per_byte();
    if (call.shape(3).elements() != b.n * row)
      return bad_input("its zero points {} have the wrong size", ir::to_string(call.shape(3)));
    const Var zero =
        slice_axis(unpacked(reshape_to(call.in(3), {b.n, row}), b, dtype), 1, 0, b.count());
    w = w - reshape_to(zero, {b.n, b.count(), 1});
  } else {
    w = w - static_cast<double>(b.bits == 4 ? 8 : 128);
  }
  w = slice_axis(reshape_to(w * scale, {b.n, b.count() * b.size}), 1, 0, b.k);
  std::vector<Var> inputs{call.in(0), w};
  if (call.has(5)) inputs.push_back(call.in(5));
  return call.done(call.builder().call1("linear", inputs, {{"trans_w", std::int64_t{1}}}));
}

}  // namespace

std::vector<Operator> contrib_quantized_operators() {
  return in_domain(
      "com.microsoft",
      {
          {"QLinearAdd", qlinear_binary, {}, "add"},
          {"QLinearMul", qlinear_binary, {}, "mul"},
          {"QLinearSigmoid", qlinear_sigmoid},
          {"QLinearLeakyRelu", qlinear_leaky_relu, "alpha"},
          {"QLinearGlobalAveragePool", qlinear_global_average_pool, "channels_last"},
          {"QLinearAveragePool", qlinear_average_pool,
           "auto_pad ceil_mode channels_last count_include_pad kernel_shape pads strides"},
          {"QLinearSoftmax", qlinear_softmax, "axis opset"},
          {"QLinearConcat", qlinear_concat, "axis"},
          {"QGemm", qgemm, "alpha transA transB"},
          {"MatMulIntegerToFloat", matmul_integer_to_float},
          {"DynamicQuantizeMatMul", dynamic_quantize_matmul},
          {"MatMulNBits", matmul_nbits, "K N accuracy_level bits block_size"},
      });
}

}  // namespace plimsoll::model::onnx
