#include "plimsoll/rewrite/keep_masks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plimsoll/ops/evaluation/interpreter.h"
#include "plimsoll/ops/functions.h"

namespace plimsoll::rewrite {
namespace {

using ops::Builder;
using ops::Var;

const ir::TensorType kMap{ir::DType::kF32, {4, 6}, {}};

std::int64_t count(const ir::Graph& graph, std::string_view op) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const ir::Node& node) { return node.op == op; });
}

// Everything before `op` is forward, it and everything behind it backward.
ir::Graph turned_at(ir::Graph graph, std::string_view op) {
  bool forward = true;
  for (ir::Node& node : graph.nodes) {
    forward = forward && node.op != op;
    node.phase = forward ? ir::Phase::kForward : ir::Phase::kBackward;
  }
  return graph;
}

ops::Array numbers() {
  ops::Array out(kMap);
  for (std::int64_t i = 0; i < out.elements(); ++i)
    out.set_number(i, static_cast<double>(i % 7) - 3);
  return out;
}

void expect_same(const ir::Graph& before, const ir::Graph& after) {
  ASSERT_TRUE(ops::verify(after));
  const auto a = ops::interpret(before, {{"x", numbers()}});
  const auto b = ops::interpret(after, {{"x", numbers()}});
  EXPECT_EQ(*(*a)[before.outputs[0].index()], *(*b)[after.outputs[0].index()]);
}

TEST(KeepMasks, ABitStandsForAMapOfWhichOnlyTheSignIsNeeded) {
  Builder b("g");
  const Var x = b.input("x", kMap);
  const Var y = b.call1("relu", {x});
  const Var z = b.call1("exp", {y});
  const ir::Graph before = turned_at(*b.finish({b.call1("relu_grad", {z, y})}), "relu_grad");
  const ir::Graph after = *keep_masks(before);
  EXPECT_EQ(count(after, "relu_grad"), 0);
  EXPECT_EQ(count(after, "positive_mask"), 1);
  expect_same(before, after);
}

TEST(KeepMasks, ClipNeedsToKnowWhatWasInside) {
  Builder b("g");
  const Var x = b.input("x", kMap);
  const Var inner = b.call1("neg", {x});
  const Var y = b.call1("clip", {inner}, {{"min", -1.0}, {"max", 2.0}});
  const ir::Graph before = turned_at(
      *b.finish({b.call1("clip_grad", {y, inner}, {{"min", -1.0}, {"max", 2.0}})}), "clip_grad");
  const ir::Graph after = *keep_masks(before);
  EXPECT_EQ(count(after, "inside_mask"), 1);
  expect_same(before, after);
}

TEST(KeepMasks, AMapThatIsReadLaterAnywayStays) {
  for (const bool as_view : {false, true}) {
    Builder b("g");
    const Var x = b.input("x", kMap);
    const Var y = b.call1("relu", {x});
    const Var z = b.call1("exp", {y});
    const Var seen = as_view ? b.call1("reshape", {y}, {{"shape", ir::Ints{6, 4}}}) : y;
    const Var dx = b.call1("relu_grad", {z, y});
    const Var other = b.call1("sqrt", {seen});
    const ir::Graph before = turned_at(*b.finish({dx, other}), "relu_grad");
    EXPECT_EQ(count(*keep_masks(before), "positive_mask"), 0) << as_view;
  }
}

}  // namespace
}  // namespace plimsoll::rewrite
