#include "plimsoll/rewrite/pool_before_relu.h"

#include <gtest/gtest.h>

#include "plimsoll/base/random.h"
#include "plimsoll/ops/evaluation/interpreter.h"
#include "plimsoll/ops/functions.h"

namespace plimsoll::rewrite {
namespace {

using ops::Builder;
using ops::Var;

const ir::Attributes kWindow = {{"kernel", ir::Ints{2, 2}}, {"strides", ir::Ints{2, 2}}};

TEST(PoolBeforeRelu, GivesTheSameNumbersFromTheSmallerMap) {
  Builder b("g");
  const Var x = b.input("x", {ir::DType::kF32, {2, 3, 8, 8}, {}});
  const Var y = b.call1("max_pool", {b.call1("relu", {x})}, kWindow);
  const ir::Graph before = *b.finish({y});
  const ir::Graph after = *pool_before_relu(before);
  ASSERT_TRUE(ops::verify(after));
  ASSERT_EQ(after.nodes.size(), 2u);
  EXPECT_EQ(after.nodes[0].op, "max_pool");
  EXPECT_EQ(after.nodes[1].op, "relu");

  Random random(7);
  ops::Array data(before.values[0].type);
  for (std::int64_t i = 0; i < data.elements(); ++i) data.set_number(i, random.normal() - 0.7);
  data.round();
  const auto a = ops::interpret(before, {{"x", data}});
  const auto c = ops::interpret(after, {{"x", data}});
  EXPECT_EQ(*(*a)[before.outputs[0].index()], *(*c)[after.outputs[0].index()]);
}

TEST(PoolBeforeRelu, LeavesAReluWithAnotherReaderAlone) {
  Builder b("g");
  const Var x = b.input("x", {ir::DType::kF32, {2, 3, 8, 8}, {}});
  const Var r = b.call1("relu", {x});
  const ir::Graph before = *b.finish({b.call1("max_pool", {r}, kWindow), r});
  EXPECT_EQ(pool_before_relu(before)->nodes, before.nodes);
}

}  // namespace
}  // namespace plimsoll::rewrite
