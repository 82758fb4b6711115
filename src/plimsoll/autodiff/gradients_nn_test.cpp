#include <gtest/gtest.h>

#include "plimsoll/autodiff/differentiate.h"
#include "plimsoll/autodiff/testing/gradient_check.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::autodiff {
namespace {

TEST(NnGradients, AgreeWithFiniteDifferencesAndReadOnlyWhatTheySay) {
  for (const OperatorExample& example : nn_examples()) {
    const Status status = check_gradient(example);
    EXPECT_TRUE(status.has_value()) << status.error().message;
  }
}

// The sum of all float values, in fp32.
Var total(const std::vector<Var>& values) {
  Var out;
  for (const Var& value : values) {
    if (!value || !ir::is_float(value.dtype())) continue;
    const Var term = ops::sum(ops::cast(value, ir::DType::kF32));
    out = out ? out + term : term;
  }
  return out;
}

// Differentiates by the inputs; every adjoint must have its input's dtype.
std::vector<Var> adjoints_of(Builder& builder, Var y, const std::vector<Var>& inputs,
                             const std::string& op) {
  const auto adjoints = differentiate(builder, y, inputs);
  if (!adjoints) {
    ADD_FAILURE() << op << ": " << adjoints.error().message;
    return {};
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if ((*adjoints)[i]) {
      EXPECT_EQ((*adjoints)[i].dtype(), inputs[i].dtype()) << op << " input " << i;
    }
  }
  return *adjoints;
}

TEST(NnGradients, HaveTheDtypeOfTheirInputInBothOrders) {
  for (const OperatorExample& example : nn_examples()) {
    // Gradient operators take statistics of another dtype; they come in through the forward ones.
    if (example.op.find("_grad") != std::string::npos) continue;
    Builder builder("narrow");
    std::vector<Var> inputs;
    for (const auto& input : example.inputs) {
      ir::TensorType type = input->type;
      if (input->is_real()) type.dtype = ir::DType::kBF16;
      inputs.push_back(builder.input("in" + std::to_string(inputs.size()), type));
    }
    const Var y = total(builder.call(example.op, inputs, example.attributes));
    const Var slope = total(adjoints_of(builder, y, inputs, example.op));
    if (slope) adjoints_of(builder, slope, inputs, example.op);
    const auto graph = builder.finish({y});
    ASSERT_TRUE(graph.has_value()) << example.op << ": " << graph.error().message;
    EXPECT_TRUE(ops::verify(*graph).has_value()) << example.op;
  }
}

}  // namespace
}  // namespace plimsoll::autodiff
