#include "plimsoll/plan/tag_walk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/functions.h"

namespace plimsoll::plan {
namespace {

using ops::Var;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kFloat = ir::DType::kF32;

ir::Graph exponential() {
  ops::Builder b("exp");
  const Var x = b.input("a", {kFloat, {8}});
  const Var y = b.input("b", {kFloat, {8}});
  const Var three = b.input("three", {kFloat, {8}});
  return *b.finish({exp(x * y + three)});
}

// Two layers with their gradient, written out: the forward half keeps h for the backward half.
ir::Graph two_layers() {
  ops::Builder b("mlp");
  const Var x = b.input("x", {kFloat, {4, 8}});
  const Var dy = b.input("dy", {kFloat, {4, 2}});
  const Var w1 = b.weight("w1", {kFloat, {8, 16}}, {});
  const Var w2 = b.weight("w2", {kFloat, {16, 2}}, {});
  const Var h = relu(matmul(x, w1));
  const Var y = matmul(h, w2);
  const Var error = y - dy;
  const Var dw2 = matmul(h, error, {.trans_a = true});
  const Var dh = relu_grad(matmul(error, w2, {.trans_b = true}), h);
  const Var dw1 = matmul(x, dh, {.trans_a = true});
  b.set_phase(ir::Phase::kUpdate);
  b.update(w2, sgd(w2, dw2, {}).w);
  b.update(w1, sgd(w1, dw1, {}).w);
  return *b.finish({sum(error)});
}

TEST(TagWalk, OneTagDoesForTheWholeExpression) {
  const TagWalk walk = walk_tags(exponential());
  ASSERT_EQ(walk.steps.size(), 3u);
  EXPECT_EQ(walk.tags, 1);
  EXPECT_FALSE(walk.steps[0].in_place);
  EXPECT_TRUE(walk.steps[1].in_place);
  EXPECT_TRUE(walk.steps[2].in_place);
  for (const TagStep& step : walk.steps) {
    EXPECT_THAT(step.tags, ElementsAre(0));
    EXPECT_THAT(step.freed, IsEmpty());
  }
}

TEST(TagWalk, WithoutInPlaceTheBoxHandsTagsBackAndForth) {
  const TagWalk walk = walk_tags(exponential(), false);
  EXPECT_EQ(walk.tags, 2);
  EXPECT_THAT(walk.steps[0].tags, ElementsAre(0));
  EXPECT_THAT(walk.steps[1].tags, ElementsAre(1));
  EXPECT_THAT(walk.steps[1].freed, ElementsAre(0));
  EXPECT_THAT(walk.steps[1].free, ElementsAre(0));
  EXPECT_THAT(walk.steps[2].tags, ElementsAre(0));
  EXPECT_THAT(walk.steps[2].free, ElementsAre(1));
}

TEST(TagWalk, AnInputThatIsReadAgainIsNotTakenOver) {
  ops::Builder b("kept");
  const Var x = b.input("x", {kFloat, {8}});
  const Var h = exp(x);
  const TagWalk walk = walk_tags(*b.finish({tanh(h) + h}));
  EXPECT_FALSE(walk.steps[1].in_place);
  EXPECT_TRUE(walk.steps[2].in_place);
  EXPECT_EQ(walk.tags, 2);
}

TEST(TagWalk, ViewsShareTheirInputsTag) {
  ops::Builder b("view");
  const Var x = b.input("x", {kFloat, {8, 2}});
  const TagWalk walk = walk_tags(*b.finish({tanh(reshape(exp(x), {16}))}));
  EXPECT_EQ(walk.steps[1].tags, walk.steps[0].tags);
  EXPECT_EQ(walk.tags, 1);
}

TEST(TagWalk, TheGradientOfTwoLayersKeepsOnlyWhatItReads) {
  const ir::Graph graph = two_layers();
  const TagWalk walk = walk_tags(graph);
  EXPECT_EQ(walk.steps.size(), graph.nodes.size());
  // At the widest moment: h, error, and the two products behind them.
  EXPECT_EQ(walk.tags, 4);
  EXPECT_LE(walk.tags, walk_tags(graph, false).tags);
  const TagStep& update = walk.steps.at(walk.steps.size() - 2);
  EXPECT_EQ(graph.node(update.node).op, "sgd");
  EXPECT_THAT(update.tags, ElementsAre(-1));  // the weight's own memory
}

TEST(TagWalk, TheTextHasOneLineAStepAndACount) {
  const ir::Graph graph = exponential();
  const std::string text = to_string(graph, walk_tags(graph));
  EXPECT_THAT(text, HasSubstr("mul(a, b)"));
  EXPECT_THAT(text, HasSubstr("tag 0 (in place)"));
  EXPECT_THAT(text, HasSubstr("1 tags for 3 results"));
}

}  // namespace
}  // namespace plimsoll::plan
