#include "plimsoll/ops/gradient_needs.h"

#include <gtest/gtest.h>

namespace plimsoll::ops {
namespace {

using ir::DType;

std::string needs(std::string_view op, const std::vector<TensorType>& inputs,
                  const ir::Attributes& attributes = {}) {
  std::vector<const TensorType*> types;
  for (const TensorType& type : inputs) types.push_back(&type);
  const auto found =
      gradient_needs(*find_definition(op), Call(types, find_definition(op)->read(attributes)));
  return found ? to_string(op, *found) : found.error().message;
}

TEST(GradientNeeds, AreWhatTheDocumentSays) {
  const TensorType x{DType::kF32, {2, 3}};
  EXPECT_EQ(needs("add", {x, x}), "add reads nothing");
  EXPECT_EQ(needs("mul", {x, x}), "mul reads in0 in1");
  EXPECT_EQ(needs("div", {x, x}), "div reads in1 out0");
  EXPECT_EQ(needs("pow", {x, x}), "pow reads in0 in1 out0");
  EXPECT_EQ(needs("maximum", {x, x}), "maximum reads in0 in1");
  EXPECT_EQ(needs("where", {{DType::kBool, {2, 3}}, x, x}), "where reads in0");
  for (const auto op : {"exp", "sqrt", "rsqrt", "reciprocal", "tan", "tanh", "sigmoid", "relu"}) {
    EXPECT_EQ(needs(op, {x}), std::string(op) + " reads out0");
  }
  for (const auto op : {"neg", "identity", "reduce_sum", "reduce_mean", "cumsum"}) {
    EXPECT_EQ(needs(op, {x}), std::string(op) + " reads nothing");
  }
  for (const auto op : {"gelu", "silu", "log", "clip", "sum_squares", "reduce_prod"}) {
    EXPECT_EQ(needs(op, {x}), std::string(op) + " reads in0");
  }
  EXPECT_EQ(needs("reduce_max", {x}), "reduce_max reads in0 out0");
  EXPECT_EQ(needs("dropout", {x, {DType::kU64, {}}}), "dropout reads in1");
  EXPECT_EQ(needs("gather", {x, {DType::kI64, {4}}}), "gather reads in1");
  EXPECT_EQ(needs("top_k", {x}, {{"k", std::int64_t{1}}}), "top_k reads out1");
  EXPECT_EQ(needs("gelu_grad", {x, x}), "gelu_grad reads in0 in1");
}

TEST(GradientNeeds, AreLessWhenLessIsWanted) {
  const TensorType x{DType::kF32, {2}};
  const ir::Attributes none;
  const auto found = gradient_needs(
      *find_definition("mul"), Call({&x, &x}, find_definition("mul")->read(none)), {true, false});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->inputs, (std::vector<bool>{false, true}));
}

}  // namespace
}  // namespace plimsoll::ops
