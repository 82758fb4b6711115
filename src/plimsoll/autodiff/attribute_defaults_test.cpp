// An absent attribute means the default on the operator's definition, to the type rule and to the
// reference evaluation alike.
#include <set>

#include <gtest/gtest.h>

#include "plimsoll/autodiff/testing/operator_examples.h"
#include "plimsoll/ops/evaluation/evaluate_call.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::autodiff {
namespace {

using ops::Array;

// Gradients whose examples are of shapes that need the attribute.
std::vector<OperatorExample> smallest_gradients() {
  const Array dy = example_reals({1, 2, 3}, 0.5, 2, 1);
  const Array lse = example_reals({1, 1, 2}, 0.5, 2, 2);
  const Array line = example_reals({1, 1, 4}, 0.5, 2, 3);
  const Array rows = example_reals({2, 3}, 0.5, 2, 4);
  const Array statistic = example_reals({2, 1}, 0.5, 2, 5);
  const Array index = example_integers({1, 1, 2}, {0, 1}, ir::DType::kU8);
  const ir::Ints two{2};
  const auto of = [](std::string op, std::vector<std::optional<Array>> inputs,
                     ir::Attributes attributes = {}) {
    return OperatorExample{op, "smallest", std::move(inputs), std::move(attributes), false, {}};
  };
  return {
      of("attention_grad", {dy, dy, dy, dy, dy, lse}),
      of("attention_qkv_grad", {dy, example_reals({1, 2, 9}, 0.5, 2, 6), dy, lse}),
      of("conv_grad_input", {dy, example_reals({2, 1, 2}, 0.5, 2, 7)},
         {{"shape", ir::Ints{1, 1, 4}}}),
      of("conv_grad_weight", {line, dy}, {{"shape", ir::Ints{2, 1, 2}}}),
      of("group_norm_grad", {rows, rows, example_reals({3}, 0.5, 2, 8), statistic, statistic}),
      of("max_pool_grad", {lse, index},
         {{"kernel", two}, {"strides", two}, {"shape", ir::Ints{1, 1, 4}}}),
      of("max_pool_select", {line, index}, {{"kernel", two}, {"strides", two}}),
  };
}

std::vector<OperatorExample> all_examples() {
  std::vector<OperatorExample> out = operator_examples();
  for (OperatorExample& example : smallest_gradients()) out.push_back(std::move(example));
  for (OperatorExample& example : examples_without_gradient()) out.push_back(std::move(example));
  return out;
}

ir::Attributes without(const ir::Attributes& attributes, std::string_view name) {
  ir::Attributes out;
  for (const auto& [other, value] : attributes.entries()) {
    if (other != name) out.set(other, value);
  }
  return out;
}

// The results with these attributes, or why there are none.
struct Answer {
  std::vector<Array> results;
  std::string refusal;
  bool operator==(const Answer&) const = default;
};

Answer answer(const OperatorExample& example, const ir::Attributes& attributes) {
  std::vector<const Array*> inputs;
  for (const auto& input : example.inputs) inputs.push_back(input ? &*input : nullptr);
  const auto results = ops::evaluate_call(example.op, inputs, attributes);
  if (!results) return {{}, results.error().message};
  return {*results, {}};
}

TEST(AttributeDefaults, AreWhatAnAbsentAttributeMeans) {
  std::set<std::pair<std::string, std::string>> seen;
  for (const OperatorExample& example : all_examples()) {
    const ops::OpDefinition* definition = ops::find_definition(example.op);
    ASSERT_NE(definition, nullptr) << example.op;
    for (const ops::AttributeSpec& spec : definition->attributes) {
      if (!spec.otherwise) continue;
      const ir::Attributes absent = without(example.attributes, spec.name);
      ir::Attributes given = absent;
      given.set(spec.name, *spec.otherwise);
      const Answer found = answer(example, absent);
      EXPECT_TRUE(found == answer(example, given))
          << example.op << " (" << example.what << ") " << spec.name;
      if (found.refusal.empty()) seen.insert({example.op, std::string(spec.name)});
    }
  }
  for (const ops::OpDefinition& definition : ops::registry()) {
    for (const ops::AttributeSpec& spec : definition.attributes) {
      if (!spec.otherwise) continue;
      EXPECT_TRUE(seen.contains({std::string(definition.name), std::string(spec.name)}))
          << "no example of " << definition.name << " works without " << spec.name;
    }
  }
}

}  // namespace
}  // namespace plimsoll::autodiff
