#include <string_view>

#include "plimsoll/autodiff/testing/operator_examples.h"
#include "plimsoll/ops/elementwise/cast.h"

namespace plimsoll::autodiff {
namespace {

using Examples = std::vector<OperatorExample>;

// Two operands: equal shapes, broadcast both ways, a scalar, an empty one.
void add_binary(Examples& out, std::string_view op, double low, double high,
                bool either_sign = true) {
  const auto values = [&](const ir::Shape& shape, std::uint64_t seed) {
    return either_sign ? example_signed(shape, low, high, seed)
                       : example_reals(shape, low, high, seed);
  };
  const std::string name(op);
  out.push_back({name, "", {values({2, 3}, 1), values({2, 3}, 2)}, {}, true, {}});
  out.push_back({name, "broadcast", {values({2, 1, 3}, 3), values({2, 1}, 4)}, {}, true, {}});
  out.push_back({name, "scalar", {values({}, 5), values({3}, 6)}, {}, true, {}});
  out.push_back({name, "empty", {values({0, 3}, 7), values({3}, 8)}, {}, true, {}});
}

void add_unary(Examples& out, std::string_view op, double low, double high, bool either_sign,
               const ir::Attributes& attributes = {}) {
  const auto values = [&](const ir::Shape& shape, std::uint64_t seed) {
    return either_sign ? example_signed(shape, low, high, seed)
                       : example_reals(shape, low, high, seed);
  };
  const std::string name(op);
  out.push_back({name, to_string(attributes), {values({2, 4}, 11)}, attributes, true, {}});
  out.push_back({name, "empty", {values({2, 0}, 12)}, attributes, true, {}});
}

// dx = grad(dy, x): linear in dy; x as for the activation itself.
void add_grad(Examples& out, std::string_view op, double low, double high,
              const ir::Attributes& attributes = {}) {
  out.push_back({std::string(op),
                 to_string(attributes),
                 {example_signed({2, 4}, 0.5, 1.5, 21), example_signed({2, 4}, low, high, 22)},
                 attributes,
                 true,
                 {}});
  out.push_back({std::string(op),
                 "empty",
                 {example_signed({0}, 0.5, 1.5, 21), example_signed({0}, low, high, 22)},
                 attributes,
                 true,
                 {}});
}

void add_arithmetic(Examples& out) {
  for (const auto op : {"add", "sub", "mul", "div"}) add_binary(out, op, 0.5, 1.5);
  add_binary(out, "pow", 0.5, 2.0, false);
  add_binary(out, "maximum", 0.1, 1.5);
  add_binary(out, "minimum", 0.1, 1.5);
  // 7 mod 3 and the like: no quotient near a whole number.
  for (const std::int64_t fmod : {0, 1}) {
    out.push_back({"mod",
                   fmod ? "as in C" : "",
                   {ops::Array::of_reals({2, 2}, {7.3, -7.3, 5.5, 1.2}),
                    ops::Array::of_reals({2}, {2.9, 3.1})},
                   {{"fmod", fmod}},
                   true,
                   {}});
  }
  // A tie must not be a kink of op(x, x): these are checked with two different values only.
  for (OperatorExample& example : out) {
    if (example.op == "maximum" || example.op == "minimum" || example.op == "mod")
      example.smooth = false;
  }
  const auto condition = example_integers({2, 1}, {1, 0}, ir::DType::kBool);
  out.push_back(
      {"where",
       "broadcast",
       {condition, example_signed({3}, 0.5, 1.5, 31), example_signed({2, 3}, 0.5, 1.5, 32)},
       {},
       true,
       {}});
  out.push_back({"where",
                 "empty",
                 {example_integers({0}, {}, ir::DType::kBool), example_signed({0}, 0.5, 1.5, 31),
                  example_signed({}, 0.5, 1.5, 32)},
                 {},
                 true,
                 {}});
}

void add_functions(Examples& out) {
  for (const auto op :
       {"neg", "abs", "identity", "exp", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh",
        "asinh", "erf", "sigmoid", "softplus", "softsign", "reciprocal"}) {
    add_unary(out, op, 0.2, 1.2, true);
  }
  for (const auto op : {"asin", "acos", "atanh"}) add_unary(out, op, 0.1, 0.8, true);
  for (const auto op : {"sqrt", "rsqrt", "log"}) add_unary(out, op, 0.5, 2.0, false);
  add_unary(out, "acosh", 1.3, 2.5, false);
  ops::Array narrow = example_signed({2, 3}, 0.5, 1.5, 41);
  narrow.type.dtype = ir::DType::kF32;
  narrow.round();
  out.push_back({"cast", "fp32 to fp64", {narrow}, {{"to", std::string("fp64")}}, false, {}});
  out.push_back({"cast_group",
                 "fp32 to fp64",
                 std::vector<std::optional<ops::Array>>(ops::kCastGroup, narrow),
                 {{"to", std::string("fp64")}},
                 false,
                 {}});
}

// Attributes of every activation, and a range of magnitudes without its kinks.
struct ActivationCase {
  std::string op;
  double low;
  double high;
  ir::Attributes attributes;
};

std::vector<ActivationCase> activation_cases() {
  const std::string tanh = "tanh";
  return {
      {"leaky_relu", 0.2, 1.5, {{"alpha", 0.1}}},
      {"elu", 0.2, 1.5, {{"alpha", 1.5}}},
      {"selu", 0.2, 1.5, {}},
      {"celu", 0.2, 1.5, {{"alpha", 0.7}}},
      {"hard_sigmoid", 0.2, 1.5, {{"alpha", 0.3}, {"beta", 0.5}}},
      {"thresholded_relu", 1.2, 2.5, {{"alpha", 1.0}}},
      {"shrink", 0.7, 1.5, {{"lambd", 0.5}, {"bias", 0.1}}},
      {"gelu", 0.1, 2.0, {}},
      {"gelu", 0.1, 2.0, {{"approximate", tanh}}},
      {"silu", 0.1, 2.0, {}},
      {"mish", 0.1, 2.0, {}},
      {"hard_swish", 0.1, 2.8, {}},
      {"hard_swish", 3.2, 4.0, {}},
      {"clip", 0.2, 1.5, {{"min", -0.1}, {"max", 1.9}}},
      {"clip", 0.2, 1.5, {{"max", 0.1}}},
  };
}

void add_activations(Examples& out) {
  add_unary(out, "relu", 0.2, 1.5, true);
  for (const ActivationCase& c : activation_cases()) {
    add_unary(out, c.op, c.low, c.high, true, c.attributes);
    add_grad(out, c.op + "_grad", c.low, c.high, c.attributes);
  }
  add_grad(out, "relu_grad", 0.2, 1.5);
  out.push_back(
      {"masked",
       "",
       {example_signed({5}, 0.5, 1.5, 21), example_integers({5}, {1, 0, 0, 1, 1}, ir::DType::kBit)},
       {},
       true,
       {}});
  add_grad(out, "sigmoid_grad", 0.2, 0.8);
  add_grad(out, "tanh_grad", 0.2, 0.8);
}

}  // namespace

std::vector<OperatorExample> elementwise_examples() {
  Examples out;
  add_arithmetic(out);
  add_functions(out);
  add_activations(out);
  const ir::Attributes dropout{{"ratio", 0.4}, {"seed", std::int64_t{5}}};
  const auto counter = example_integers({}, {3}, ir::DType::kU64);
  out.push_back(
      {"dropout", "", {example_signed({3, 4}, 0.5, 1.5, 51), counter}, dropout, true, {}});
  out.push_back(
      {"dropout", "empty", {example_signed({0}, 0.5, 1.5, 51), counter}, dropout, true, {}});
  out.push_back(
      {"add_dropout",
       "",
       {example_signed({3, 4}, 0.5, 1.5, 52), example_signed({3, 4}, 0.5, 1.5, 53), counter},
       dropout,
       true,
       {}});
  return out;
}

}  // namespace plimsoll::autodiff
