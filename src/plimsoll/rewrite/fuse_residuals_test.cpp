#include "plimsoll/rewrite/fuse_residuals.h"

#include <gtest/gtest.h>

#include "plimsoll/ops/evaluation/interpreter.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/split_rows.h"
#include "plimsoll/rewrite/testing/random_sources.h"

namespace plimsoll::rewrite {
namespace {

using ops::Builder;
using ops::Var;

struct ResidualForm {
  bool norm_first = true;
  bool norm_is_read_twice = false;
  bool slopes_are_read_twice = false;
};

// The end of a residual block, and what flows back through it.
ir::Graph residual_end(const ResidualForm& how) {
  Builder b("block");
  const ir::TensorType type{ir::DType::kF32, {2, 3, 2, 2}};
  const Var x = b.input("x", type);
  const Var other = b.input("other", type);
  const Var gamma = b.weight("gamma", {ir::DType::kF32, {3}}, {});
  const Var beta = b.weight("beta", {ir::DType::kF32, {3}}, {});
  const auto norm = batch_norm(x, gamma, beta, {});
  const Var y = how.norm_first ? add_relu(norm.y, other) : add_relu(other, norm.y);
  std::vector<Var> outputs{y};
  if (how.norm_is_read_twice) outputs.push_back(neg(norm.y));
  b.set_phase(ir::Phase::kBackward);
  const Var left = b.input("left", type);
  const Var right = b.input("right", type);
  const Var slopes = left + right;
  const Var back = relu_grad(slopes, y);
  if (how.slopes_are_read_twice) outputs.push_back(neg(slopes));
  const auto gradient = b.call("batch_norm_grad", {back, x, gamma, beta, norm.mean, norm.var}, {});
  outputs.insert(outputs.end(), {gradient[0], gradient[1], gradient[2]});
  auto graph = b.finish(outputs);
  EXPECT_TRUE(graph) << graph.error().message;
  return *graph;
}

bool contains_op(const ir::Graph& graph, std::string_view op) {
  return std::ranges::any_of(graph.nodes, [&](const ir::Node& node) { return node.op == op; });
}

void expect_same_ends(const ir::Graph& before, const ir::Graph& after) {
  const auto sources = normal_sources(before, 3);
  const auto a = ops::interpret(before, sources);
  const auto b = ops::interpret(after, sources);
  ASSERT_TRUE(a && b);
  for (std::size_t o = 0; o < before.outputs.size(); ++o) {
    const ops::Array& wanted = *(*a)[before.outputs[o].index()];
    const ops::Array& got = *(*b)[after.outputs[o].index()];
    for (std::int64_t i = 0; i < wanted.elements(); ++i)
      EXPECT_NEAR(wanted.number(i), got.number(i), 1e-6) << o << ": " << i;
  }
}

TEST(FuseResiduals, EndsOfBlocksAreOnePass) {
  for (const bool norm_first : {true, false}) {
    const ir::Graph before = residual_end({.norm_first = norm_first});
    const auto after = fuse_residuals(before);
    ASSERT_TRUE(after) << after.error().message;
    EXPECT_EQ(after->nodes.size(), 3u);
    EXPECT_EQ(after->nodes[0].op, "batch_norm_add_relu");
    EXPECT_EQ(after->nodes[1].op, "add_relu_grad");
    expect_same_ends(before, *after);
  }
}

TEST(FuseResiduals, DropoutIsAddedAtOnce) {
  for (const bool first : {true, false}) {
    Builder b("dropout");
    const ir::TensorType type{ir::DType::kF32, {4, 8}};
    const Var x = b.input("x", type);
    const Var h = b.input("h", type);
    const Var counter = b.input("counter", {ir::DType::kU64, {}});
    const Var dropped = dropout(h, counter, 0.5, 3);
    const ir::Graph before = *b.finish({first ? dropped + x : x + dropped});
    const auto after = fuse_residuals(before);
    ASSERT_TRUE(after) << after.error().message;
    ASSERT_EQ(after->nodes.size(), 1u);
    EXPECT_EQ(after->nodes[0].op, "add_dropout");
    expect_same_ends(before, *after);
  }
}

TEST(FuseResiduals, GradientsOfNormsAreAddedAtOnce) {
  for (const bool first : {true, false}) {
    Builder b("norm");
    const ir::TensorType type{ir::DType::kF32, {4, 8}};
    const Var x = b.input("x", type);
    const Var dy = b.input("dy", type);
    const Var other = b.input("other", type);
    const Var gamma = b.weight("gamma", {ir::DType::kF32, {8}}, {});
    const Var mean = b.input("mean", {ir::DType::kF32, {4}});
    const Var rstd = b.input("rstd", {ir::DType::kF32, {4}});
    b.set_phase(ir::Phase::kBackward);
    const auto made = b.call("layer_norm_grad", {dy, x, gamma, mean, rstd}, {});
    const Var sum = first ? made[0] + other : other + made[0];
    const ir::Graph before = *b.finish({sum, neg(made[1]), neg(made[2])});
    const auto after = fuse_residuals(before);
    ASSERT_TRUE(after) << after.error().message;
    ASSERT_EQ(after->nodes.size(), 3u);
    EXPECT_EQ(after->nodes[0].op, "layer_norm_grad_add");
    expect_same_ends(before, *after);
  }
}

// Terms one after the other, each added in a layer of its own.
ir::Graph sum_of_terms(const std::vector<std::string>& layers, bool partial_is_read = false) {
  Builder b("terms");
  Var sum = b.input("t", {ir::DType::kF32, {4, 8}});
  std::vector<Var> sums;
  for (const std::string& layer : layers) {
    b.set_layer(layer);
    sum = sum + b.input("t" + std::to_string(sums.size()), {ir::DType::kF32, {4, 8}});
    sums.push_back(sum);
  }
  return *b.finish(partial_is_read ? sums : std::vector<Var>{sum});
}

TEST(FuseResiduals, TermsOfOneLayerAreAddedAtOnceUpToFour) {
  const ir::Graph before =
      sum_of_terms({"0.self.value", "0.self.key", "0.self.query", "0.self.more"});
  const auto after = fuse_residuals(before);
  ASSERT_TRUE(after) << after.error().message;
  ASSERT_EQ(after->nodes.size(), 2u);
  EXPECT_EQ(after->nodes[0].op, "add_n");
  EXPECT_EQ(after->nodes[0].inputs.size(), 4u);
  EXPECT_EQ(after->nodes[1].op, "add");
  expect_same_ends(before, *after);
}

TEST(FuseResiduals, TermsOfOtherLayersAndPartialSumsThatAreReadStay) {
  const ir::Graph apart = sum_of_terms({"0.self.value", "1.self.value", "2.self.value"});
  const ir::Graph read = sum_of_terms({"0.self.value", "0.self.key", "0.self.query"}, true);
  for (const ir::Graph& before : {apart, read}) {
    const auto after = fuse_residuals(before);
    ASSERT_TRUE(after) << after.error().message;
    EXPECT_FALSE(contains_op(*after, "add_n"));
    EXPECT_EQ(after->nodes.size(), 3u);
  }
}

TEST(FuseResiduals, WhatOthersReadStays) {
  const ir::Graph norm = residual_end({.norm_is_read_twice = true});
  const auto kept_norm = fuse_residuals(norm);
  ASSERT_TRUE(kept_norm);
  EXPECT_TRUE(contains_op(*kept_norm, "add_relu"));
  expect_same_ends(norm, *kept_norm);
  const ir::Graph slopes = residual_end({.slopes_are_read_twice = true});
  const auto kept_sum = fuse_residuals(slopes);
  ASSERT_TRUE(kept_sum);
  EXPECT_TRUE(contains_op(*kept_sum, "relu_grad"));
  expect_same_ends(slopes, *kept_sum);
}

TEST(FuseResiduals, WhatWasFusedCanBeSplit) {
  Builder b("block");
  const ir::TensorType type{ir::DType::kF32, {8, 512, 8}};
  const Var counter = b.source("counter", ir::ValueKind::kState, {ir::DType::kU64, {}});
  const Var x = b.input("x", type);
  const Var w = b.weight("w", {ir::DType::kF32, {8, 8}}, {});
  const Var kept = dropout(linear(x, w, {}, {}), counter, 0.5, 7);
  const Var y = linear(x + kept, w, {}, {});
  const ir::Graph fused = *fuse_residuals(*b.finish({reduce_sum(y, {2})}));
  ASSERT_TRUE(contains_op(fused, "add_dropout"));
  const auto split = split_rows(fused, Bytes(1024));
  ASSERT_TRUE(split) << split.error().message;
  EXPECT_GT(split->parts, 1);
  EXPECT_GT(std::ranges::count(split->graph.nodes, "add_dropout", &ir::Node::op), 1);
  expect_same_ends(fused, split->graph);
}

}  // namespace
}  // namespace plimsoll::rewrite
