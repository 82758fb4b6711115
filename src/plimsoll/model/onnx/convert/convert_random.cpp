// Random numbers: all of them are drawn by random_uniform from the counter of the step
// (ops/elementwise/random_uniform.h), so they change from step to step.
#include <bit>
#include <numbers>

#include "plimsoll/model/onnx/convert/building_blocks.h"
#include "plimsoll/model/onnx/convert/operator_table.h"
#include "plimsoll/ops/elementwise/random_uniform.h"

namespace plimsoll::model::onnx {
namespace {

using ir::DType;

// The file's seed where there is one: two nodes with one seed draw the same numbers.
std::int64_t seed_of(OperatorCall& call) {
  if (!call.has_attribute("seed")) return call.importer().next_seed();
  return std::bit_cast<std::int64_t>(call.real("seed", 0));
}

Var uniform(OperatorCall& call, const ir::TensorType& type, double low, double high,
            std::int64_t seed) {
  return ops::random_uniform(call.importer().random_counter(), type, low, high, seed);
}

// Of ...Like the type of the input, of the others the attributes.
Result<ir::TensorType> drawn_type(OperatorCall& call, bool like) {
  ir::TensorType out{DType::kF32, {}, {}};
  if (like) {
    if (!call.has(0)) return bad_input("its input is missing");
    out = {call.dtype(0), call.shape(0), {}};
  } else {
    PLIMSOLL_TRY(out.shape, ir::Shape::make(call.integers("shape")));
  }
  if (call.has_attribute("dtype")) {
    PLIMSOLL_TRY(out.dtype, call.attribute_dtype("dtype", ElementType::kFloat));
  }
  if (!ir::is_float(out.dtype))
    return bad_input("random numbers of type {} are not supported", ir::name(out.dtype));
  return out;
}

template <bool like>
Status random_uniform(OperatorCall& call) {
  PLIMSOLL_TRY(const ir::TensorType type, drawn_type(call, like));
  return call.done(uniform(call, type, call.real("low", 0), call.real("high", 1), seed_of(call)));
}

// Box and Muller: sqrt(-2 ln u) cos(2 pi v), in fp32 at least.
template <bool like>
Status random_normal(OperatorCall& call) {
  PLIMSOLL_TRY(const ir::TensorType type, drawn_type(call, like));
  const ir::TensorType wide{type.dtype == DType::kF64 ? DType::kF64 : DType::kF32, type.shape, {}};
  const std::int64_t seed = seed_of(call);
  Builder& builder = call.builder();
  // In (0, 1]: of 0 there is no logarithm.
  const Var zero_to_one = uniform(call, wide, 0, 1, seed);
  const Var u = ops::number(zero_to_one, 1) - zero_to_one;
  const Var angle = uniform(call, wide, 0, 2 * std::numbers::pi, ~seed);
  const Var radius = builder.call1("sqrt", {builder.call1("log", {u}) * ops::number(u, -2)});
  const Var normal = radius * builder.call1("cos", {angle});
  return call.done(cast_to(normal * ops::number(normal, call.real("scale", 1)) +
                               ops::number(normal, call.real("mean", 0)),
                           type.dtype));
}

Status bernoulli(OperatorCall& call) {
  if (!call.has(0)) return bad_input("its input is missing");
  if (!ir::is_float(call.dtype(0))) return bad_input("its probabilities are no floats");
  DType dtype = call.dtype(0);
  if (call.has_attribute("dtype")) {
    PLIMSOLL_TRY(dtype, call.attribute_dtype("dtype", ElementType::kFloat));
  }
  const Var drawn = uniform(call, {call.dtype(0), call.shape(0), {}}, 0, 1, seed_of(call));
  return call.done(cast_to(call.builder().call1("less", {drawn, call.in(0)}), dtype));
}

Status no_multinomial(OperatorCall&) {
  return bad_input("draws from a distribution that it is given, which is not supported");
}

}  // namespace

std::vector<Operator> random_operators() {
  return {
      {"RandomUniform", random_uniform<false>, "dtype high low seed shape", {}, false},
      {"RandomUniformLike", random_uniform<true>, "dtype high low seed", {}, false},
      {"RandomNormal", random_normal<false>, "dtype mean scale seed shape", {}, false},
      {"RandomNormalLike", random_normal<true>, "dtype mean scale seed", {}, false},
      {"Bernoulli", bernoulli, "dtype seed", {}, false},
      {"Multinomial", no_multinomial, {}, {}, false},
  };
}

}  // namespace plimsoll::model::onnx
