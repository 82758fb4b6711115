#include "plimsoll/rewrite/fuse_scatter_add.h"

#include <gtest/gtest.h>

#include <unordered_map>

#include "plimsoll/base/random.h"
#include "plimsoll/ops/evaluation/interpreter.h"
#include "plimsoll/ops/functions.h"

namespace plimsoll::rewrite {
namespace {

using ops::Builder;
using ops::Var;

// Two gradients of one table of 6 rows, one of them of a lookup.
ir::Graph two_gradients(bool lookup_first, bool other_reader) {
  Builder b("g");
  const Var h = b.input("h", {ir::DType::kF32, {6, 3}});
  const Var dy = b.input("dy", {ir::DType::kF32, {4, 3}});
  const Var indices = b.input("i", {ir::DType::kI64, {4}});
  b.set_phase(ir::Phase::kBackward);
  const Var dense = tanh(h);
  const Var rows = gather_grad(dy, indices, 0, {6, 3});
  std::vector<Var> outputs{lookup_first ? rows + dense : dense + rows};
  if (other_reader) outputs.push_back(neg(dense));
  return *b.finish(outputs);
}

ops::Array random_array(const ir::TensorType& type, std::uint64_t seed) {
  Random random(seed);
  ops::Array out(type);
  for (std::int64_t i = 0; i < out.elements(); ++i)
    out.set_number(
        i, type.dtype == ir::DType::kI64 ? static_cast<double>(random.below(3)) : random.normal());
  out.round();
  return out;
}

TEST(FuseScatterAdd, AddsTheRowsToTheOtherGradient) {
  for (const bool lookup_first : {false, true}) {
    const ir::Graph before = two_gradients(lookup_first, false);
    const ir::Graph after = *fuse_scatter_add(before);
    ASSERT_TRUE(ops::verify(after));
    ASSERT_EQ(after.nodes.size(), 2u);
    EXPECT_EQ(after.nodes[1].op, "gather_grad");
    EXPECT_EQ(after.nodes[1].inputs.size(), 3u);
    std::unordered_map<std::string, ops::Array> inputs;
    for (std::size_t v = 0; v < 3; ++v)
      inputs.emplace(before.values[v].name, random_array(before.values[v].type, v + 1));
    const auto a = ops::interpret(before, inputs);
    const auto c = ops::interpret(after, inputs);
    const ops::Array& wanted = *(*a)[before.outputs[0].index()];
    const ops::Array& got = *(*c)[after.outputs[0].index()];
    for (std::int64_t i = 0; i < wanted.elements(); ++i)
      EXPECT_NEAR(wanted.number(i), got.number(i), 1e-6) << i;
  }
}

TEST(FuseScatterAdd, LeavesAGradientWithAnotherReaderAlone) {
  const ir::Graph before = two_gradients(false, true);
  EXPECT_EQ(fuse_scatter_add(before)->nodes, before.nodes);
}

}  // namespace
}  // namespace plimsoll::rewrite
