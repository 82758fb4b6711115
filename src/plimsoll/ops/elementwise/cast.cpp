#include "plimsoll/ops/elementwise/cast.h"

#include "plimsoll/ops/definition/attribute_rules.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/rules.h"

namespace plimsoll::ops {
namespace {

Result<std::vector<TensorType>> infer_cast(const Call& call) {
  PLIMSOLL_TRY(const ir::DType to, dtype_attribute(call.attributes(), "to"));
  return std::vector{TensorType{to, call.shape(0), call.type(0).layout}};
}

double real_of(const Array& x, std::size_t i) {
  if (x.is_real()) return x.reals[i];
  if (x.type.dtype == ir::DType::kU64)
    return static_cast<double>(static_cast<std::uint64_t>(x.integers[i]));
  return static_cast<double>(x.integers[i]);
}

void evaluate_cast(const Evaluation& e) {
  const Array& x = e.in(0);
  Array& y = e.out();
  const bool asks_for_zero = y.type.dtype == ir::DType::kBool || y.type.dtype == ir::DType::kBit;
  const auto count = static_cast<std::size_t>(x.elements());
  for (std::size_t i = 0; i < count; ++i) {
    if (y.is_real()) {
      y.reals[i] = real_of(x, i);
    } else if (!x.is_real()) {
      y.integers[i] = x.integers[i];
    } else {
      y.integers[i] = asks_for_zero ? x.reals[i] != 0 : to_integer(x.reals[i]);
    }
  }
}

Result<std::vector<TensorType>> infer_bit_cast(const Call& call) {
  PLIMSOLL_TRY(const ir::DType to, dtype_attribute(call.attributes(), "to"));
  const ir::DType from = call.type(0).dtype;
  if (ir::bits(to) != ir::bits(from))
    return bad_input("{} and {} differ in width", ir::name(from), ir::name(to));
  return std::vector{TensorType{to, call.shape(0), call.type(0).layout}};
}

void evaluate_bit_cast(const Evaluation& e) {
  const auto read = Array::from_bytes(e.out().type, e.in(0).to_bytes());
  PLIMSOLL_CHECK(read.has_value(), "bit_cast was not verified: {}", read.error().message);
  e.out() = *read;
}

std::vector<Var> cast_gradient(const Backward& g) {
  return {cast(g.dy(), g.in(0).dtype())};
}

Result<TensorType> made_type(const Call& call) {
  PLIMSOLL_TRY(const ir::Shape shape, shape_attribute(call.attributes(), "shape"));
  PLIMSOLL_TRY(const ir::DType dtype, dtype_attribute(call.attributes(), "dtype"));
  return TensorType{dtype, shape, {}};
}

Result<std::vector<TensorType>> infer_fill(const Call& call) {
  PLIMSOLL_TRY(const TensorType type, made_type(call));
  return std::vector{type};
}

// An integer attribute is taken exactly, a real one is converted.
std::int64_t integer_of(const ir::Attributes& attributes, std::string_view name,
                        std::int64_t otherwise) {
  return attributes.integer(name,
                            to_integer(attributes.real(name, static_cast<double>(otherwise))));
}

void evaluate_fill(const Evaluation& e) {
  Array& y = e.out();
  y.reals.assign(y.reals.size(), e.attributes.real("value", 0));
  y.integers.assign(y.integers.size(), integer_of(e.attributes, "value", 0));
}

Result<std::vector<TensorType>> infer_iota(const Call& call) {
  PLIMSOLL_TRY(const TensorType type, made_type(call));
  PLIMSOLL_RETURN_IF_ERROR(normal_axis(call.attributes().integer("axis", 0), type.shape.rank()));
  return std::vector{type};
}

void evaluate_iota(const Evaluation& e) {
  Array& y = e.out();
  const ir::Shape& shape = y.type.shape;
  const int axis = *normal_axis(e.attributes.integer("axis", 0), shape.rank());
  const std::int64_t inner = shape.elements(axis + 1, shape.rank());
  const auto first = static_cast<std::uint64_t>(integer_of(e.attributes, "start", 0));
  const auto step = static_cast<std::uint64_t>(integer_of(e.attributes, "step", 1));
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const std::int64_t place = i / inner % shape[axis];
    const auto at = static_cast<std::size_t>(i);
    if (y.is_real()) {
      y.reals[at] =
          e.attributes.real("start", 0) + e.attributes.real("step", 1) * static_cast<double>(place);
    } else {
      y.integers[at] = static_cast<std::int64_t>(first + step * static_cast<std::uint64_t>(place));
    }
  }
}

OpDefinition making_definition(std::string_view name, InferRule infer, EvaluateRule evaluate) {
  return {.name = name,
          .inputs = exactly(0),
          .outputs = exactly(1),
          .infer = infer,
          .gradient = Gradient::none(),
          .in_place = InPlace::never(),
          .cost = bytes_cost,
          .recompute = Recompute::kCheap,
          .layout = name == "fill" ? LayoutRule::kAny : LayoutRule::kPlain,
          .evaluate = evaluate};
}

}  // namespace

Var cast(Var x, ir::DType to) {
  if (x.dtype() == to) return x;
  return x.builder().call1("cast", {x}, {{"to", std::string(ir::name(to))}});
}

Var fill(Builder& builder, const ir::TensorType& type, double value) {
  return builder.fill(type, value);
}

Var zeros_like(Var x) {
  return x.builder().fill({x.dtype(), x.shape(), {}}, 0);
}

Var iota(Builder& builder, const ir::TensorType& type, int axis, std::int64_t start,
         std::int64_t step) {
  return builder.call1("iota", {},
                       {{"shape", ir::Ints(type.shape.begin(), type.shape.end())},
                        {"dtype", std::string(ir::name(type.dtype))},
                        {"axis", std::int64_t{axis}},
                        {"start", start},
                        {"step", step}});
}

std::vector<OpDefinition> cast_definitions() {
  return {
      {.name = "cast",
       .inputs = exactly(1),
       .outputs = exactly(1),
       .infer = infer_cast,
       .gradient = Gradient(cast_gradient),
       .in_place = InPlace::over(0),
       .cost = elementwise_cost,
       .recompute = Recompute::kCheap,
       .layout = LayoutRule::kAny,
       .evaluate = evaluate_cast},
      {.name = "bit_cast",
       .inputs = exactly(1),
       .outputs = exactly(1),
       .infer = infer_bit_cast,
       .gradient = Gradient::none(),
       .in_place = InPlace::over(0),
       .cost = elementwise_cost,
       .recompute = Recompute::kCheap,
       .layout = LayoutRule::kAny,
       .evaluate = evaluate_bit_cast},
      making_definition("fill", infer_fill, evaluate_fill),
      making_definition("iota", infer_iota, evaluate_iota),
  };
}

}  // namespace plimsoll::ops
