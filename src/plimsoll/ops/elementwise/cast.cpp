#include "plimsoll/ops/elementwise/cast.h"

#include "plimsoll/ops/definition/attribute_rules.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/presets.h"
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

Result<std::vector<TensorType>> infer_cast_group(const Call& call) {
  PLIMSOLL_TRY(const ir::DType to, dtype_attribute(call.attributes(), "to"));
  std::vector<TensorType> out;
  for (int i = 0; i < kCastGroup; ++i) out.push_back({to, call.shape(i), call.type(i).layout});
  return out;
}

void evaluate_cast_group(const Evaluation& e) {
  for (int i = 0; i < kCastGroup; ++i) {
    std::vector<Array> made;
    made.push_back(std::move(e.out(i)));
    evaluate_cast({{&e.in(i)}, made, e.attributes});
    e.out(i) = std::move(made.front());
  }
}

std::vector<Var> decompose_cast_group(const Decomposition& d) {
  const std::optional<ir::DType> to = ir::parse_dtype(d.attributes.text("to"));
  PLIMSOLL_CHECK(to.has_value(), "cast_group was not verified");
  std::vector<Var> out;
  for (int i = 0; i < kCastGroup; ++i) out.push_back(cast(d.in(i), *to));
  return out;
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
std::int64_t integer_of(const AttributeReader& attributes, std::string_view name) {
  return attributes.integer(name, to_integer(attributes.real(name)));
}

void evaluate_fill(const Evaluation& e) {
  Array& y = e.out();
  y.reals.assign(y.reals.size(), e.attributes.real("value"));
  y.integers.assign(y.integers.size(), integer_of(e.attributes, "value"));
}

Result<std::vector<TensorType>> infer_iota(const Call& call) {
  PLIMSOLL_TRY(const TensorType type, made_type(call));
  PLIMSOLL_RETURN_IF_ERROR(normal_axis(call.attributes().integer("axis"), type.shape.rank()));
  return std::vector{type};
}

void evaluate_iota(const Evaluation& e) {
  Array& y = e.out();
  const ir::Shape& shape = y.type.shape;
  const int axis = verified_axis(e.attributes, shape);
  const std::int64_t inner = shape.elements(axis + 1, shape.rank());
  const auto first = static_cast<std::uint64_t>(integer_of(e.attributes, "start"));
  const auto step = static_cast<std::uint64_t>(integer_of(e.attributes, "step"));
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    const std::int64_t place = i / inner % shape[axis];
    const auto at = static_cast<std::size_t>(i);
    if (y.is_real()) {
      y.reals[at] =
          e.attributes.real("start") + e.attributes.real("step") * static_cast<double>(place);
    } else {
      y.integers[at] = static_cast<std::int64_t>(first + step * static_cast<std::uint64_t>(place));
    }
  }
}

OpDefinition cast_group_definition() {
  return {.name = "cast_group",
          .inputs = exactly(kCastGroup),
          .outputs = exactly(kCastGroup),
          .attributes = {attribute::text("to")},
          .infer = infer_cast_group,
          .gradient = Gradient::of_decomposition(),
          .in_place = InPlace::never(),
          .cost = elementwise_cost,
          .recompute = Recompute::kCheap,
          .layout = LayoutRule::kAny,
          .evaluate = evaluate_cast_group,
          .decompose = decompose_cast_group};
}

OpDefinition making_definition(std::string_view name, InferRule infer, EvaluateRule evaluate) {
  OpDefinition out = moving_definition(name, 0, infer, Gradient::none(), evaluate);
  if (name == "fill") out.layout = LayoutRule::kAny;
  return out;
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
      elementwise_definition("cast", 1, infer_cast, Gradient(cast_gradient), InPlace::over(0),
                             evaluate_cast)
          .having({attribute::text("to")}),
      cast_group_definition(),
      elementwise_definition("bit_cast", 1, infer_bit_cast, Gradient::none(), InPlace::over(0),
                             evaluate_bit_cast)
          .having({attribute::text("to")}),
      making_definition("fill", infer_fill, evaluate_fill)
          .having({attribute::integers("shape"), attribute::text("dtype"),
                   attribute::real("value", 0)}),
      making_definition("iota", infer_iota, evaluate_iota)
          .having({attribute::integers("shape"), attribute::text("dtype"),
                   attribute::integer("axis", 0), attribute::real("start", 0),
                   attribute::real("step", 1)}),
  };
}

}  // namespace plimsoll::ops
