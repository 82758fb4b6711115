#include "plimsoll/model/onnx/fold_batch_norm.h"

#include <gtest/gtest.h>

#include "plimsoll/model/onnx/testing/backend_case.h"
#include "plimsoll/ops/builder.h"

namespace plimsoll::model::onnx {
namespace {

ops::Var weight(ops::Builder& builder, const char* name, const ir::Shape& shape) {
  return builder.weight(name, {ir::DType::kF32, shape, {}}, {ir::Init::Kind::kFile, 0, 0});
}

ops::Var norm(ops::Builder& b, ops::Var x) {
  return b.call1("batch_norm_inference", {x, weight(b, "gamma", {4}), weight(b, "beta", {4}),
                                          weight(b, "mean", {4}), weight(b, "var", {4})});
}

// What is left of the graph after folding computes what it did before.
ir::Graph expect_same_function(ops::Builder& builder, ops::Var y) {
  const auto graph = builder.finish({y});
  EXPECT_TRUE(graph);
  ImportedModel model;
  model.graph = *graph;
  for (const ir::Value& value : graph->values) {
    if (value.kind != ir::ValueKind::kWeight || value.init.kind != ir::Init::Kind::kFile) continue;
    ops::Array array(value.type);
    for (std::int64_t i = 0; i < array.elements(); ++i)
      array.set_number(i, 0.1 + 0.05 * static_cast<double>(i % 7));
    array.round();
    model.weights.add_owned(value.name, value.type, array.to_bytes());
  }
  ops::Array ramp({ir::DType::kF32, {1, 2, 5, 5}, {}});
  for (std::int64_t i = 0; i < ramp.elements(); ++i)
    ramp.set_number(i, static_cast<double>(i % 11) - 5);
  const auto expected = run_reference(model, {{"x", ramp}});
  EXPECT_TRUE(expected) << expected.error().message;
  auto folded = fold_batch_norm(model.graph, model.weights);
  EXPECT_TRUE(folded) << folded.error().message;
  model.graph = *folded;
  const auto got = run_reference(model, {{"x", ramp}});
  EXPECT_TRUE(got) << got.error().message;
  const Status same = compare(got->front(), expected->front(), {1e-5, 1e-5});
  EXPECT_TRUE(same) << same.error().message;
  return *folded;
}

ops::Var input(ops::Builder& builder) {
  return builder.input("x", {ir::DType::kF32, {1, 2, 5, 5}, {}});
}
const ir::Attributes kPadded{{"pads", ir::Ints{1, 1, 1, 1}}};

TEST(FoldBatchNorm, KeepsTheFunction) {
  ops::Builder b("block");
  const ops::Var y =
      b.call1("conv", {input(b), weight(b, "w", {4, 2, 3, 3}), weight(b, "b", {4})}, kPadded);
  EXPECT_EQ(expect_same_function(b, norm(b, y)).nodes.size(), 1U);
}

TEST(FoldBatchNorm, TakesAWholeChainOfScalesAndShifts) {
  ops::Builder b("chain");
  ops::Var y = norm(b, b.call1("conv", {input(b), weight(b, "w", {4, 2, 3, 3})}, kPadded));
  y = b.call1("mul",
              {y, b.call1("reshape", {weight(b, "scale", {4})}, {{"shape", ir::Ints{4, 1, 1}}})});
  y = b.call1("sub", {y, weight(b, "shift", {1, 4, 1, 1})});
  y = b.call1("div", {y, weight(b, "all", {1})});
  EXPECT_EQ(expect_same_function(b, y).nodes.size(), 1U);
}

TEST(FoldBatchNorm, TakesScalesIntoANormWithoutAConvolution) {
  ops::Builder b("norm");
  const ops::Var x = input(b);
  const ops::Var twice = b.call1("concat", {x, b.call1("relu", {x})}, {{"axis", std::int64_t{1}}});
  ops::Var y = b.call1("mul", {norm(b, twice), weight(b, "scale", {4, 1, 1})});
  y = b.call1("add", {weight(b, "shift", {4, 1, 1}), y});
  EXPECT_EQ(expect_same_function(b, y).nodes.size(), 3U);
}

TEST(FoldBatchNorm, LeavesWhatIsNoLineOfAChannelAlone) {
  ops::Builder b("others");
  ops::Var y = b.call1("conv", {input(b), weight(b, "w", {5, 2, 3, 3})}, kPadded);
  y = b.call1("mul", {y, weight(b, "row", {5})});  // along the columns
  EXPECT_EQ(expect_same_function(b, b.call1("div", {weight(b, "c", {5, 1, 1}), y})).nodes.size(),
            3U);
}

// A few bytes of file say how to fill gigabytes: they are not written out.
TEST(FoldBatchNorm, DoesNotWriteOutHugeFilledWeights) {
  ops::Builder b("filled");
  const ops::Var x = b.input("x", {ir::DType::kF32, {1, 1 << 16, 1, 1}, {}});
  const ops::Var w = b.weight("w", {ir::DType::kF32, {4, 1 << 16, 1 << 10, 1 << 10}, {}},
                              {ir::Init::Kind::kConstant, 0.5, 0});
  const ops::Var y =
      b.call1("conv", {x, w}, {{"pads", ir::Ints{1 << 10, 1 << 10, 1 << 10, 1 << 10}}});
  const auto graph = b.finish({b.call1(
      "mul", {y, b.weight("s", {ir::DType::kF32, {1}, {}}, {ir::Init::Kind::kConstant, 2, 0})})});
  ASSERT_TRUE(graph);
  store::WeightSource weights;
  EXPECT_EQ(fold_batch_norm(*graph, weights)->nodes.size(), 2U);
}

}  // namespace
}  // namespace plimsoll::model::onnx
