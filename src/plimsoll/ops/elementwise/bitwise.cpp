#include "plimsoll/ops/elementwise/bitwise.h"

#include <functional>

#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/presets.h"
#include "plimsoll/ops/elementwise/binary_evaluation.h"

namespace plimsoll::ops {
namespace {

Result<std::vector<TensorType>> infer_bitwise(const Call& call) {
  const ir::DType dtype = call.type(0).dtype;
  if (ir::is_float(dtype) || dtype == ir::DType::kBool || dtype == ir::DType::kBit) {
    return bad_input("input is {}, expects an integer", ir::name(dtype));
  }
  return broadcast_all(call);
}

double no_reals(double, double) {
  return 0;
}

template <typename Function>
void evaluate_bits(const Evaluation& e) {
  evaluate_binary(e, no_reals, Function());
}
void evaluate_not(const Evaluation& e) {
  for (std::size_t i = 0; i < e.out().integers.size(); ++i) {
    e.out().integers[i] = ~e.in(0).integers[i];
  }
}

void evaluate_shift(const Evaluation& e) {
  const bool left = e.attributes.text("direction") == "left";
  const ir::DType dtype = e.in(0).type.dtype;
  const int width = ir::bits(dtype);
  evaluate_binary(e, no_reals, [&](std::int64_t a, std::int64_t amount) -> std::int64_t {
    if (amount < 0 || amount >= width)
      return !left && a < 0 && ir::is_signed_integer(dtype) ? -1 : 0;
    if (left) return wrapping(static_cast<std::uint64_t>(a) << amount);
    return dtype == ir::DType::kU64 ? wrapping(static_cast<std::uint64_t>(a) >> amount)
                                    : a >> amount;
  });
}

OpDefinition bitwise_definition(std::string_view name, int inputs, InferRule infer,
                                EvaluateRule evaluate) {
  return elementwise_definition(
      name, inputs, infer, Gradient::none(),
      inputs == 1 ? InPlace::over(0) : InPlace::over_any_of({{0, 0}, {0, 1}}), evaluate);
}

Var shift(Var a, Var amount, std::string direction) {
  return a.builder().call1("bit_shift", {a, amount}, {{"direction", std::move(direction)}});
}

}  // namespace

Var bit_shift_left(Var a, Var amount) {
  return shift(a, amount, "left");
}
Var bit_shift_right(Var a, Var amount) {
  return shift(a, amount, "right");
}

std::vector<OpDefinition> bitwise_definitions() {
  return {
      bitwise_definition("bit_and", 2, infer_bitwise, evaluate_bits<std::bit_and<>>),
      bitwise_definition("bit_or", 2, infer_bitwise, evaluate_bits<std::bit_or<>>),
      bitwise_definition("bit_xor", 2, infer_bitwise, evaluate_bits<std::bit_xor<>>),
      bitwise_definition("bit_not", 1, infer_bitwise, evaluate_not),
      bitwise_definition("bit_shift", 2, infer_bitwise, evaluate_shift)
          .having({attribute::choice("direction", {"left", "right"})}),
  };
}

}  // namespace plimsoll::ops
