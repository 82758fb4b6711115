#include "plimsoll/model/onnx/fold_batch_norm.h"

#include <gtest/gtest.h>

#include "plimsoll/model/onnx/backend_case.h"
#include "plimsoll/ops/builder.h"

namespace plimsoll::model::onnx {
namespace {

TEST(FoldBatchNorm, KeepsTheFunction) {
  ops::Builder builder("block");
  const auto weight = [&](const char* name, const ir::Shape& shape) { return builder.weight(name, {ir::DType::kF32, shape, {}}, {ir::Init::Kind::kFile, 0, 0}); };
  const ops::Var x = builder.input("x", {ir::DType::kF32, {1, 2, 5, 5}, {}});
  const ops::Var y = builder.call1("conv", {x, weight("w", {4, 2, 3, 3}), weight("b", {4})}, {{"pads", ir::Ints{1, 1, 1, 1}}});
  const ops::Var z = builder.call1("batch_norm_inference", {y, weight("gamma", {4}), weight("beta", {4}), weight("mean", {4}), weight("var", {4})});
  const auto graph = builder.finish({z});
  ASSERT_TRUE(graph);
  ImportedModel before;
  before.graph = *graph;
  for (const ir::Value& value : graph->values) {
    if (value.kind != ir::ValueKind::kWeight) continue;
    ops::Array array(value.type);
    for (std::int64_t i = 0; i < array.elements(); ++i) array.set_number(i, 0.1 + 0.05 * static_cast<double>(i % 7));
    array.round();
    before.weights.add_owned(value.name, value.type, array.to_bytes());
  }
  ops::Array ramp({ir::DType::kF32, {1, 2, 5, 5}, {}});
  for (std::int64_t i = 0; i < ramp.elements(); ++i) ramp.set_number(i, static_cast<double>(i % 11) - 5);
  const auto expected = run_reference(before, {{"x", ramp}});
  ASSERT_TRUE(expected) << expected.error().message;
  auto folded = fold_batch_norm(before.graph, before.weights);
  ASSERT_TRUE(folded) << folded.error().message;
  ASSERT_EQ(folded->nodes.size(), 1U);
  before.graph = std::move(*folded);
  const auto got = run_reference(before, {{"x", ramp}});
  ASSERT_TRUE(got) << got.error().message;
  const Status same = compare(got->front(), expected->front(), {1e-5, 1e-5});
  EXPECT_TRUE(same) << same.error().message;
}

}  // namespace
}  // namespace plimsoll::model::onnx
