#include "plimsoll/rewrite/hoist_reorders.h"

#include <gtest/gtest.h>

#include "plimsoll/ops/functions.h"

namespace plimsoll::rewrite {
namespace {

ir::Graph conv_with_reordered_weight(bool trained) {
  ops::Builder b("g");
  const ops::Var x = b.input("x", {ir::DType::kF32, {1, 8, 4, 4}, {}});
  const ops::Var w = b.weight("w", {ir::DType::kF32, {8, 8, 1, 1}, {}}, {});
  const ops::Var blocked = b.call1("reorder", {w}, {{"layout", std::string("@0123:8b1:8b0")}});
  const ops::Var y = ops::conv(x, blocked, {}, {});
  if (trained) {
    b.set_phase(ir::Phase::kUpdate);
    b.update(w, b.call1("sgd", {w, w}, {{"lr", 0.1}}));
  }
  return *b.finish({y});
}

TEST(HoistReorders, StoresAnUntrainedWeightAsItsReaderWantsIt) {
  const ir::Graph graph = hoist_reorders(conv_with_reordered_weight(false));
  ASSERT_TRUE(ir::verify(graph));
  ASSERT_EQ(graph.nodes.size(), 1u);
  EXPECT_EQ(graph.nodes[0].op, "conv");
  EXPECT_EQ(ir::to_string(graph.value(graph.nodes[0].inputs[1]).type.layout), "@0123:8b1:8b0");
}

TEST(HoistReorders, LeavesATrainedWeightPlain) {
  const ir::Graph graph = conv_with_reordered_weight(true);
  EXPECT_EQ(hoist_reorders(graph), graph);
}

}  // namespace
}  // namespace plimsoll::rewrite
