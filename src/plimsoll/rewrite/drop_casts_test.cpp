#include "plimsoll/rewrite/drop_casts.h"

#include <gtest/gtest.h>

#include "plimsoll/ops/evaluation/interpreter.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/testing/random_sources.h"

namespace plimsoll::rewrite {
namespace {

using ops::Builder;
using ops::Var;

int casts_counted(const ir::Graph& graph, std::string_view op) {
  int out = 0;
  for (const ir::Node& node : graph.nodes) out += node.op == op;
  return out;
}

// The largest difference of any output.
double largest_difference(const ir::Graph& before, const ir::Graph& after) {
  const auto sources = random_sources(before, 7, [](const ir::Value& value, Random& random) {
    return value.type.dtype == ir::DType::kI64 ? static_cast<double>(1 + random.below(3))
                                               : std::abs(random.normal());
  });
  const auto a = ops::interpret(before, sources);
  const auto b = ops::interpret(after, sources);
  EXPECT_TRUE(a && b);
  double most = 0;
  for (std::size_t o = 0; o < before.outputs.size(); ++o) {
    const ops::Array& wanted = *(*a)[before.outputs[o].index()];
    const ops::Array& got = *(*b)[after.outputs[o].index()];
    EXPECT_EQ(before.value(before.outputs[o]).type, after.value(after.outputs[o]).type);
    for (std::int64_t i = 0; i < wanted.elements(); ++i)
      most = std::max(most, std::abs(wanted.number(i) - got.number(i)));
  }
  return most;
}

TEST(DropCasts, LossAndItsGradientAreNarrow) {
  Builder b("loss");
  const Var logits = b.input("logits", {ir::DType::kBF16, {5, 7}});
  const Var labels = b.input("labels", {ir::DType::kI64, {5}});
  const Var wide = cast(logits, ir::DType::kF32);
  const auto loss = cross_entropy(wide, labels);
  b.set_phase(ir::Phase::kBackward);
  const Var one = b.fill({ir::DType::kF32, {}}, 1);
  const Var slopes = b.call1("cross_entropy_grad", {one, wide, labels, loss.lse});
  const ir::Graph before = *b.finish({loss.loss, cast(slopes, ir::DType::kBF16)});
  const auto after = drop_casts(before);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(casts_counted(*after, "cast"), 0);
  EXPECT_EQ(largest_difference(before, *after), 0);
}

TEST(DropCasts, AGradientThatOthersReadWideStaysWide) {
  Builder b("loss");
  const Var logits = b.input("logits", {ir::DType::kBF16, {5, 7}});
  const Var labels = b.input("labels", {ir::DType::kI64, {5}});
  const Var wide = cast(logits, ir::DType::kF32);
  const auto loss = cross_entropy(wide, labels);
  b.set_phase(ir::Phase::kBackward);
  const Var one = b.fill({ir::DType::kF32, {}}, 1);
  const Var slopes = b.call1("cross_entropy_grad", {one, wide, labels, loss.lse});
  const ir::Graph before = *b.finish({loss.loss, cast(slopes, ir::DType::kBF16), neg(slopes)});
  const auto after = drop_casts(before);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(casts_counted(*after, "cast"), 2);
  EXPECT_EQ(largest_difference(before, *after), 0);
}

TEST(DropCasts, UpdatesReadNarrowGradients) {
  Builder b("update");
  const ir::TensorType type{ir::DType::kF32, {3, 5}};
  const Var w = b.weight("w", type, {});
  const Var m = b.weight("m", type, {});
  const Var v = b.weight("v", type, {});
  const Var step = b.input("step", {ir::DType::kI64, {}});
  const Var g = b.input("g", {ir::DType::kBF16, {3, 5}});
  b.set_phase(ir::Phase::kUpdate);
  const auto made = b.call("adamw", {w, cast(g, ir::DType::kF32), m, v, step}, {{"lr", 0.01}});
  const ir::Graph before = *b.finish({made[0], made[1], made[2]});
  const auto after = drop_casts(before);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(casts_counted(*after, "cast"), 0);
  EXPECT_EQ(largest_difference(before, *after), 0);
}

TEST(DropCasts, NormsKeepTheDigitsOfTheirParameters) {
  Builder b("norm");
  const Var x = b.input("x", {ir::DType::kBF16, {4, 8}});
  const Var dy = b.input("dy", {ir::DType::kBF16, {4, 8}});
  const Var gamma = b.weight("gamma", {ir::DType::kF32, {8}}, {});
  const Var beta = b.weight("beta", {ir::DType::kF32, {8}}, {});
  const Var narrow = cast(gamma, ir::DType::kBF16);
  const auto made =
      b.call("layer_norm", {x, narrow, cast(beta, ir::DType::kBF16)}, {{"axis", std::int64_t{-1}}});
  b.set_phase(ir::Phase::kBackward);
  const auto slopes =
      b.call("layer_norm_grad", {dy, x, narrow, made[1], made[2]}, {{"axis", std::int64_t{-1}}});
  const ir::Graph before = *b.finish(
      {made[0], slopes[0], cast(slopes[1], ir::DType::kF32), cast(slopes[2], ir::DType::kF32)});
  const auto after = drop_casts(before);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(casts_counted(*after, "cast"), 0);
  EXPECT_LT(largest_difference(before, *after), 0.1);
  EXPECT_GT(largest_difference(before, *after), 0);
}

TEST(DropCasts, AGraphOfOneTypeIsLeftAlone) {
  Builder b("plain");
  const Var x = b.input("x", {ir::DType::kF32, {4, 8}});
  const ir::Graph before = *b.finish({neg(x)});
  EXPECT_EQ(drop_casts(before)->nodes, before.nodes);
}

}  // namespace
}  // namespace plimsoll::rewrite
