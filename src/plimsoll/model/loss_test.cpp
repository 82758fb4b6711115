#include "plimsoll/model/loss.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::model {
namespace {

// The type of `labels` that cross-entropy asks for.
ir::TensorType labels_for(const ir::Shape& logits) {
  ops::Builder b("model");
  const auto graph = with_loss(
      *b.finish({b.call1("relu", {b.input("x", {ir::DType::kF32, logits, {}})})}), "cross-entropy");
  EXPECT_TRUE(graph) << graph.error().message;
  EXPECT_TRUE(ops::verify(*graph));
  EXPECT_EQ(graph->value(graph->outputs.front()).type.shape.rank(), 0);
  const auto labels = std::find_if(graph->values.begin(), graph->values.end(),
                                   [](const ir::Value& value) { return value.name == "labels"; });
  return labels->type;
}

TEST(Loss, CrossEntropyTakesTheLastAxisAsClasses) {
  EXPECT_EQ(labels_for({4, 10}), (ir::TensorType{ir::DType::kI64, {4}, {}}));
  EXPECT_EQ(labels_for({4, 7, 10}), (ir::TensorType{ir::DType::kI64, {4, 7}, {}}));
}

TEST(Loss, CrossEntropyTakesTheChannelsOfImagesAsClasses) {
  EXPECT_EQ(labels_for({2, 10, 5, 6}), (ir::TensorType{ir::DType::kI64, {2, 5, 6}, {}}));
  EXPECT_EQ(labels_for({2, 10, 3, 5, 6}), (ir::TensorType{ir::DType::kI64, {2, 3, 5, 6}, {}}));
}

}  // namespace
}  // namespace plimsoll::model
