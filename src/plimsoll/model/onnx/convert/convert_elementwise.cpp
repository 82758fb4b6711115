// Operators that work element by element.
#include <algorithm>
#include <cmath>
#include <limits>

#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"

namespace plimsoll::model::onnx {
namespace {

using ir::DType;

Status unary(OperatorCall& call) {
  return call.done(call.builder().call1(call.target(), {call.in(0)}));
}

// Before operator set 7 the second operand was placed by `axis` when `broadcast` was set.
constexpr std::string_view kPlacement = "axis broadcast";
Var second_operand(OperatorCall& call) {
  const Var b = call.in(1);
  if (call.version() >= 7 || call.integer("broadcast", 0) == 0 || !call.has_attribute("axis"))
    return b;
  const std::int64_t axis = call.integer("axis", 0);
  const int rank = call.rank(0);
  const std::int64_t first = axis < 0 ? axis + rank : axis;
  if (first < 0 || first + b.rank() > rank) {
    call.builder().fail("its axis does not fit the operands");
    return b;
  }
  const ir::Shape own = b.shape();
  ir::Ints shape(own.begin(), own.end());
  shape.resize(static_cast<std::size_t>(rank - first), 1);
  return call.builder().call1("reshape", {b}, {{"shape", shape}});
}

Status binary(OperatorCall& call) {
  const Var a = call.in(0);
  return call.done(call.builder().call1(call.target(), {a, second_operand(call)}));
}

// Integer division by zero would stop the program when folded.
Status refuse_zero_divisor(OperatorCall& call) {
  const Array* divisor = call.known(1);
  if (divisor != nullptr && !divisor->is_real() &&
      std::ranges::find(divisor->integers, 0) != divisor->integers.end())
    return bad_input("divides integers by zero");
  return {};
}

Status divide(OperatorCall& call) {
  PLIMSOLL_RETURN_IF_ERROR(refuse_zero_divisor(call));
  return binary(call);
}

// fmod = 0 has the sign of the divisor, fmod = 1 that of the dividend.
Status mod(OperatorCall& call) {
  PLIMSOLL_RETURN_IF_ERROR(refuse_zero_divisor(call));
  return call.done(
      call.builder().call1("mod", {call.in(0), call.in(1)}, {{"fmod", call.integer("fmod", 0)}}));
}

Status power(OperatorCall& call) {
  Builder& builder = call.builder();
  const Var a = call.in(0);
  const Array* exponent = call.known(1);
  const bool real = ir::is_float(a.dtype());
  const bool grows = call.rank(1) > a.rank();
  if (real && !grows && exponent != nullptr && exponent->elements() == 1) {
    const double value = exponent->number(0);
    Var y;
    if (value == 1) y = builder.call1("identity", {a});
    if (value == 2) y = a * a;
    if (value == 3) y = a * a * a;
    if (value == 0.5) y = builder.call1("sqrt", {a});
    if (value == -0.5) y = builder.call1("rsqrt", {a});
    if (value == -1) y = builder.call1("reciprocal", {a});
    if (y) return call.done(y);
  }
  const Var b = second_operand(call);
  // The result has the base's type; integers are raised as doubles.
  const DType working = real ? a.dtype() : DType::kF64;
  return call.done(
      cast_to(builder.call1("pow", {cast_to(a, working), cast_to(b, working)}), a.dtype()));
}

Status many(OperatorCall& call) {
  if (call.inputs() == 0 || !call.has(0)) return bad_input("has no inputs");
  Var sum = call.in(0);
  for (int i = 1; i < call.inputs(); ++i)
    sum = call.builder().call1(call.target(), {sum, call.in(i)});
  if (call.inputs() == 1) sum = call.builder().call1("identity", {sum});
  return call.done(sum);
}

Status mean(OperatorCall& call) {
  if (call.inputs() == 0 || !call.has(0)) return bad_input("has no inputs");
  Var sum = call.in(0);
  for (int i = 1; i < call.inputs(); ++i) sum = sum + call.in(i);
  return call.done(sum / static_cast<double>(call.inputs()));
}

Status bit_shift(OperatorCall& call) {
  const bool right = call.text("direction", "LEFT") == "RIGHT";
  return call.done(call.builder().call1("bit_shift", {call.in(0), call.in(1)},
                                        {{"direction", std::string(right ? "right" : "left")}}));
}

Status shrink(OperatorCall& call) {
  const double lambd = call.real("lambd", 0.5);
  const double bias = call.real("bias", 0);
  Builder& builder = call.builder();
  const Var x = call.in(0);
  if (ir::is_float(x.dtype())) {
    return call.done(builder.call1("shrink", {x}, {{"lambd", lambd}, {"bias", bias}}));
  }
  const Var real = cast_to(x, DType::kF64);
  return call.done(
      cast_to(builder.call1("shrink", {real}, {{"lambd", lambd}, {"bias", bias}}), x.dtype()));
}

Var swished(OperatorCall& call) {
  const double alpha = call.real("alpha", 1);
  const Var x = call.in(0);
  return alpha == 1 ? unary_call("silu", x) : x * unary_call("sigmoid", x * alpha);
}

Status swish(OperatorCall& call) {
  return call.done(swished(call));
}

Status swiglu(OperatorCall& call) {
  const Var gate = swished(call);
  return call.done(gate * call.in(1));
}

Status prelu(OperatorCall& call) {
  Builder& builder = call.builder();
  const Var x = call.in(0);
  Var slope = call.in(1);
  if (call.version() < 7 && slope.rank() == 1 && slope.dim(0) > 1 && x.rank() > 1) {
    ir::Ints shape(static_cast<std::size_t>(x.rank() - 1), 1);
    shape.front() = slope.dim(0);
    slope = builder.call1("reshape", {slope}, {{"shape", shape}});
  }
  const Var zero = ops::number(x, 0);
  const Var negative = builder.call1("minimum", {x, zero});
  return call.done(builder.call1("maximum", {x, zero}) + negative * slope);
}

Status clip(OperatorCall& call) {
  Builder& builder = call.builder();
  const Var x = call.in(0);
  ir::Attributes bounds;
  const bool attributes = call.version() < 11;
  if (attributes) {
    if (call.has_attribute("min")) bounds.set("min", call.real("min", 0));
    if (call.has_attribute("max")) bounds.set("max", call.real("max", 0));
  }
  const Array* low = attributes ? nullptr : call.known(1);
  const Array* high = attributes ? nullptr : call.known(2);
  const bool all_known =
      attributes || ((!call.has(1) || low != nullptr) && (!call.has(2) || high != nullptr));
  if (all_known && ir::is_float(x.dtype())) {
    if (low != nullptr && low->elements() == 1) bounds.set("min", low->number(0));
    if (high != nullptr && high->elements() == 1) bounds.set("max", high->number(0));
    return call.done(builder.call1("clip", {x}, bounds));
  }
  Var y = x;
  if (!attributes && call.has(1)) y = builder.call1("maximum", {y, call.in(1)});
  if (!attributes && call.has(2)) y = builder.call1("minimum", {y, call.in(2)});
  if (y.id() == x.id()) y = builder.call1("identity", {x});
  return call.done(y);
}

// relu, abs, neg and sign of integers: the float operators' meaning in comparisons.
Status integer_unary(OperatorCall& call) {
  Builder& builder = call.builder();
  const Var x = call.in(0);
  if (ir::is_float(x.dtype())) return unary(call);
  const Var zero = ops::number(x, 0);
  if (call.target() == "relu") {
    call.out(0, builder.call1("maximum", {x, zero}));
  } else if (call.target() == "neg") {
    call.out(0, zero - x);
  } else if (call.target() == "abs") {
    call.out(0, builder.call1("where", {builder.call1("less", {x, zero}), zero - x, x}));
  } else {
    const Var above = cast_to(builder.call1("greater", {x, zero}), x.dtype());
    if (!ir::is_signed_integer(x.dtype())) {
      call.out(0, above);
    } else {
      call.out(0, above - cast_to(builder.call1("less", {x, zero}), x.dtype()));
    }
  }
  return {};
}

Status is_inf(OperatorCall& call) {
  Builder& builder = call.builder();
  const Var x = call.in(0);
  Var y = builder.call1("is_inf", {x});
  const bool positive = call.integer("detect_positive", 1) != 0;
  const bool negative = call.integer("detect_negative", 1) != 0;
  const Var zero = ops::number(x, 0);
  if (!positive) y = builder.call1("logical_and", {y, builder.call1("less", {x, zero})});
  if (!negative) y = builder.call1("logical_and", {y, builder.call1("greater", {x, zero})});
  return call.done(y);
}

// To fp8 what is too large becomes the largest number, unless the file says otherwise.
Var saturating_cast(OperatorCall& call, DType to) {
  const Var x = call.in(0);
  const double largest = to == DType::kF8E4M3 ? 448 : to == DType::kF8E5M2 ? 57344 : 0;
  if (largest == 0 || call.integer("saturate", 1) == 0 || !ir::is_float(x.dtype()))
    return cast_to(x, to);
  return cast_to(call.builder().call1("clip", {x}, {{"min", -largest}, {"max", largest}}), to);
}

Status convert_cast(OperatorCall& call) {
  PLIMSOLL_TRY(const DType to, call.attribute_dtype("to", ElementType::kUndefined));
  if (call.dtype(0) == to) return call.done(call.input(0));
  return call.done(saturating_cast(call, to));
}

Status cast_like(OperatorCall& call) {
  if (!call.has(1)) return bad_input("its second input is missing");
  if (call.dtype(0) == call.dtype(1)) return call.done(call.input(0));
  return call.done(saturating_cast(call, call.dtype(1)));
}

Status bit_cast(OperatorCall& call) {
  PLIMSOLL_TRY(const ir::DType to, call.attribute_dtype("to", ElementType::kUndefined));
  return call.done(
      call.builder().call1("bit_cast", {call.in(0)}, {{"to", std::string(ir::name(to))}}));
}

Status identity(OperatorCall& call) {
  if (!call.has(0)) return bad_input("its input is missing");
  // Equal tensors that an exporter stored once are told apart by such nodes.
  return call.done(call.importer().renamed(call.input(0), call.node().outputs.front()));
}

Status dropout(OperatorCall& call) {
  if (!call.has(0)) return bad_input("its input is missing");
  double ratio = call.real("ratio", 0.5);
  bool training = call.version() < 7 && call.integer("is_test", 0) == 0;
  if (call.version() >= 7 && call.version() < 12) training = call.importer().training();
  if (call.version() >= 12) {
    PLIMSOLL_TRY(ratio, call.known_real(1, "ratio", 0.5));
    const Array* mode = call.known(2);
    if (call.has(2) && mode == nullptr) return bad_input("training_mode is not a constant");
    training = mode != nullptr && mode->elements() == 1 && mode->number(0) != 0;
  }
  if (!call.importer().training() || ratio == 0) training = training && ratio > 0;
  Builder& builder = call.builder();
  if (!training || ratio == 0) {
    call.out_alias(0, call.input(0));
    if (call.wants(1)) call.out(1, builder.fill({DType::kBool, call.shape(0), {}}, 1));
    return {};
  }
  if (!(ratio > 0 && ratio < 1)) return bad_input("a ratio of {} is not below 1", ratio);
  const ir::Attributes how{{"ratio", ratio}, {"seed", call.importer().next_seed()}};
  const Var counter = call.importer().random_counter();
  call.out(0, builder.call1("dropout", {call.in(0), counter}, how));
  if (call.wants(1)) {
    // The same numbers are drawn for a tensor of ones.
    const Var kept = builder.call1(
        "dropout", {builder.fill({call.dtype(0), call.shape(0), {}}, 1), counter}, how);
    call.out(1, builder.call1("greater", {kept, ops::number(kept, 0)}));
  }
  return {};
}

}  // namespace

std::vector<Operator> elementwise_operators() {
  std::vector<Operator> out = {
      same("abs", integer_unary),
      same("neg", integer_unary),
      same("sign", integer_unary),
      same("relu", integer_unary),
      same("add", binary, kPlacement),
      same("sub", binary, kPlacement),
      same("mul", binary, kPlacement),
      same("div", divide, kPlacement),
      same("pow", power, kPlacement),
      same("equal", binary, kPlacement),
      same("less", binary, kPlacement),
      same("greater", binary, kPlacement),
      same("logical_and", binary, kPlacement),
      same("logical_or", binary, kPlacement),
      same("logical_xor", binary, kPlacement),
      same("mod", mod),
      same("maximum", many),
      same("minimum", many),
      same("shrink", shrink),
      same("is_inf", is_inf, "detect_negative detect_positive"),
      same("identity", identity),
      {"BitShift", bit_shift, "direction"},
      {"Sum", many, {}, "add"},
      {"Mean", mean},
      {"Swish", swish, "alpha"},
      {"SwiGLU", swiglu, "alpha"},
      {"PRelu", prelu},
      {"Clip", clip, "max min"},
      {"Cast", convert_cast, "saturate to"},
      {"BitCast", bit_cast, "to"},
      {"CastLike", cast_like, "saturate"},
      {"Dropout", dropout, "is_test ratio seed", {}, false},
  };
  for (const auto* op : {"floor",         "ceil",        "round",
                         "reciprocal",    "sqrt",        "exp",
                         "log",           "sin",         "cos",
                         "tan",           "asin",        "acos",
                         "atan",          "sinh",        "cosh",
                         "tanh",          "asinh",       "acosh",
                         "atanh",         "erf",         "sigmoid",
                         "softplus",      "softsign",    "mish",
                         "hard_swish",    "is_nan",      "less_equal",
                         "greater_equal", "logical_not", "bit_and",
                         "bit_or",        "bit_xor",     "bit_not",
                         "where",         "leaky_relu",  "elu",
                         "celu",          "selu",        "thresholded_relu",
                         "hard_sigmoid",  "gelu"}) {
    out.push_back(same(op));
  }
  std::ranges::find(out, "Identity", &Operator::name)->fold = false;
  return out;
}

}  // namespace plimsoll::model::onnx
