#include "plimsoll/rewrite/shard_training.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/collective/shard.h"
#include "plimsoll/ops/functions.h"

namespace plimsoll::rewrite {
namespace {

using ops::Var;

constexpr std::int64_t kElements = 24;  // 96 bytes, which take 128 in a run

// Forward h3 h2 h1 h0 read a weight each; gradients come in the same order, and updates behind.
ir::Graph four_weights(const std::string& narrow = "", std::int64_t elements = kElements) {
  ops::Builder b("four");
  const ir::TensorType type{ir::DType::kF32, {elements}, {}};
  const Var x = b.input("x", type);
  const ops::CollectiveOptions how{2, true, true};
  std::vector<Var> weights, hidden;
  for (const char* name : {"w0", "w1", "w2", "w3"}) {
    const Var w = b.weight(name, type, {ir::Init::Kind::kNormal, 0, 0.5});
    weights.push_back(w);
    const Var read = narrow.empty() ? w
                                    : b.call1("cast", {b.call1("cast", {w}, {{"to", narrow}})},
                                              {{"to", std::string("fp32")}});
    hidden.push_back(ops::exp((hidden.empty() ? x : hidden.back()) * read));
  }
  Var gradient = hidden.back();
  for (std::size_t i = 4; i-- > 0;) {
    b.set_phase(ir::Phase::kBackward);
    gradient = ops::tanh(narrow.empty() ? gradient * weights[i] : hidden[i]);
    const Var sum = ops::all_reduce(gradient, how);
    b.set_phase(ir::Phase::kUpdate);
    const Var m = b.source(b.graph().value(weights[i].id()).name + ".momentum",
                           ir::ValueKind::kOptimizer, type, {ir::Init::Kind::kConstant, 0, 0});
    const ops::Updated next = ops::momentum(weights[i], sum, m, {});
    b.update(weights[i], next.w);
    b.update(m, next.m);
  }
  auto graph = b.finish({});
  EXPECT_TRUE(graph.has_value()) << graph.error().message;
  return *graph;
}

std::string shape_of(const ir::Graph& graph) {
  std::string out;
  for (const ir::Node& node : graph.nodes) {
    if (node.op == "exp") out += "h ";
    if (node.op == "tanh") out += "d ";
    if (node.op == "momentum") out += "u ";
    if (node.op == "all_reduce") out += "R ";
    if (node.op == "scatter_sums") out += "S" + std::to_string(node.inputs.size()) + " ";
    if (node.op == "own_part") out += "p ";
    if (node.op == "gather_update") out += "G" + std::to_string(node.outputs.size()) + " ";
    if (node.op == "gather_weights") out += "g" + std::to_string(node.outputs.size()) + " ";
  }
  return out;
}

ir::Graph sharded(const ir::Graph& graph, std::int64_t bucket, bool weights) {
  auto out = shard_training(
      graph,
      {.bucket = Bytes(bucket), .alignment = Bytes(64), .gradients = true, .weights = weights});
  EXPECT_TRUE(out.has_value()) << out.error().message;
  return out ? *out : ir::Graph{};
}

TEST(ShardTraining, UpdatesAPartOfABucketBehindTheNextOne) {
  EXPECT_EQ(shape_of(sharded(four_weights(), 192, false)), "h h h h d d S2 d d S2 p u G2 p u G2 ");
  EXPECT_EQ(shape_of(sharded(four_weights(), 1 << 20, false)), "h h h h d d d d S4 p u G4 ");
}

TEST(ShardTraining, KeepsMomentsOfAPartAndTheWholeWeights) {
  const ir::Graph graph = sharded(four_weights(), 192, false);
  std::int64_t moments = 0, weights = 0;
  for (const ir::Value& value : graph.values) {
    if (value.kind == ir::ValueKind::kOptimizer) moments += value.type.shape.elements();
    if (value.kind == ir::ValueKind::kWeight) weights += value.type.shape.elements();
  }
  // Two buckets; a run of 32 + 24 elements has parts of 28, rounded up to units of 16.
  EXPECT_EQ(moments, 2 * 32);
  EXPECT_EQ(weights, 4 * kElements);
}

TEST(ShardTraining, GathersWeightsOneAheadAndAgainForTheBackwardPass) {
  // Each of four is asked for when the one before it is first read. The last two are still there
  // when the backward pass comes to them; the others were given up, and are made again.
  EXPECT_EQ(shape_of(sharded(four_weights(), 1, true)),
            "g1 g1 h g1 h g1 h g1 h d S1 d S1 u g1 d S1 u d S1 u u ");
}

TEST(ShardTraining, GathersOnceWhatIsReadAsNarrowCasts) {
  const ir::Graph graph = sharded(four_weights("bf16"), 1 << 20, false);
  EXPECT_EQ(shape_of(graph), "g4 h h h h d d d d S4 u ");
  for (const ir::Node& node : graph.nodes) {
    if (node.op == "gather_weights") {
      EXPECT_EQ(graph.value(node.outputs[0]).type.dtype, ir::DType::kBF16);
    }
  }
}

// Parts of fp32 are cast and gathered in bf16, whose lines hold twice as many elements.
TEST(ShardTraining, GathersNarrowCastsFromWhereTheirPartsLie) {
  for (const std::int64_t elements : {10, 24, 40, 1000}) {
    const ir::Graph graph = sharded(four_weights("bf16", elements), 1 << 20, false);
    const auto run_of = [&](std::string_view op) {
      const auto found = std::ranges::find(graph.nodes, op, &ir::Node::op);
      EXPECT_NE(found, graph.nodes.end()) << op;
      return ops::run_parts(graph, *found);
    };
    const ops::RunParts scattered = run_of("scatter_sums");
    const ops::RunParts gathered = run_of("gather_weights");
    EXPECT_EQ(gathered.first, scattered.first) << elements;
    EXPECT_EQ(gathered.part, scattered.part) << elements;
  }
}

TEST(ShardTraining, NamesWhatPartsAreMadeOf) {
  const ir::Graph graph = sharded(four_weights(), 192, true);
  const std::vector<ops::ShardedState> states = ops::sharded_state(graph);
  ASSERT_EQ(states.size(), 4U);  // weights and moments of two buckets
  EXPECT_EQ(states[0].part, 32);
  ASSERT_EQ(states[0].members.size(), 2U);
  EXPECT_EQ(states[0].members[0].name, "w3");
  EXPECT_EQ(states[0].members[1].name, "w2");
  EXPECT_EQ(states[0].members[1].first, 32);
  EXPECT_EQ(states[0].members[1].init, (ir::Init{ir::Init::Kind::kNormal, 0, 0.5}));
  EXPECT_EQ(states[1].members[1].name, "w2.momentum");
}

constexpr std::int64_t kRows = 1000, kWidth = 16;  // 64,000 bytes

// A table that is read first and last, as GPT-2's, with its gradient in one dtype or cast to fp32.
ir::Graph tied_table(std::int64_t examples, bool clips = false, const std::string& narrow = "") {
  ops::Builder b("tied");
  const auto as = [&](Var x, const std::string& to) {
    return narrow.empty() ? x : b.call1("cast", {x}, {{"to", to}});
  };
  const Var ids = b.input("ids", {ir::DType::kI64, {examples}, {}});
  const Var table =
      b.weight("table", {ir::DType::kF32, {kRows, kWidth}, {}}, {ir::Init::Kind::kNormal, 0, 0.5});
  const Var read = as(table, narrow);
  const Var x = ops::tanh(ops::gather(read, ids));
  const Var logits = ops::linear(x, read, {}, {true});
  b.set_phase(ir::Phase::kBackward);
  const Var dlogits = ops::tanh(logits);
  const Var dw = ops::linear_grad_weight(x, dlogits, {true}, false).dw;
  const Var dx = ops::linear(dlogits, read);
  const Var both = b.call1("gather_grad", {dx, ids, dw},
                           {{"axis", std::int64_t{0}}, {"shape", ir::Ints{kRows, kWidth}}});
  const Var sum = ops::all_reduce(as(both, "fp32"), {2, true, true});
  std::vector<Var> squares;
  if (clips) squares.push_back(ops::exp(b.call1("sum_squares", {sum})));
  b.set_phase(ir::Phase::kUpdate);
  const Var m = b.source("table.momentum", ir::ValueKind::kOptimizer,
                         {ir::DType::kF32, {kRows, kWidth}, {}}, {ir::Init::Kind::kConstant, 0, 0});
  const ops::Updated next = ops::momentum(table, sum, m, {});
  b.update(table, next.w);
  b.update(m, next.m);
  auto graph = b.finish(squares);
  EXPECT_TRUE(graph.has_value()) << graph.error().message;
  return *graph;
}

// Bytes of the largest that some node makes.
std::int64_t largest_gradient(const ir::Graph& graph) {
  std::int64_t out = 0;
  for (const ir::Node& node : graph.nodes) {
    if (node.op != "linear_grad_weight" && node.op != "gather_grad") continue;
    out = std::max(out, ir::bytes_of(graph.value(node.outputs[0]).type).value);
  }
  return out;
}

TEST(ShardTraining, MakesTheRowsOfALargeGradientPieceByPiece) {
  const ir::Graph graph = sharded(tied_table(8), 32'000, false);
  // 500 rows each; the second piece is sent before the first is updated
  EXPECT_EQ(shape_of(graph), "d d S1 S1 p u G1 p u G1 ");
  EXPECT_EQ(largest_gradient(graph), 500 * kWidth * 4);
  ASSERT_EQ(graph.updates.size(), 3U);
  const std::vector<ops::ShardedState> states = ops::sharded_state(graph);
  ASSERT_EQ(states.size(), 2U);
  EXPECT_EQ(states[1].members[0].name, "table.momentum");
  EXPECT_EQ(states[1].members[0].shape, (ir::Shape{kRows, kWidth}));
  EXPECT_EQ(states[1].members[0].begin, 500 * kWidth);
  EXPECT_EQ(states[1].members[0].count, 500 * kWidth);
}

// logits of 100 examples are 400,000 bytes: they are not kept for a gradient of 64,000.
TEST(ShardTraining, MakesProductsEarlyWhereTheyAreSmallerThanWhatTheyRead) {
  const auto behind = [](const ir::Graph& graph, std::string_view first, std::string_view then) {
    std::size_t a = 0, b = 0;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      if (graph.nodes[n].op == first) a = n;
      if (graph.nodes[n].op == then) b = n;
    }
    return a < b;
  };
  EXPECT_TRUE(behind(sharded(tied_table(100), 32'000, false), "linear_grad_weight", "linear"));
  EXPECT_FALSE(behind(sharded(tied_table(8), 32'000, false), "linear_grad_weight", "linear"));
}

TEST(ShardTraining, GathersPiecesSideBySide) {
  for (const char* narrow : {"", "bf16"}) {
    const ir::Graph graph = sharded(tied_table(8, false, narrow), 32'000, true);
    EXPECT_EQ(largest_gradient(graph), 500 * kWidth * (*narrow == 0 ? 4 : 2));
    const auto joined = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                     [](const ir::Node& node) { return node.op == "concat"; });
    ASSERT_NE(joined, graph.nodes.end());
    for (const ValueId input : joined->inputs)
      EXPECT_EQ(graph.node(graph.value(input).producer).op, "gather_weights");
    EXPECT_EQ(graph.value(joined->outputs[0]).type.shape, (ir::Shape{kRows, kWidth}));
  }
}

TEST(ShardTraining, AddsUpTheNormOfPieces) {
  const ir::Graph graph = sharded(tied_table(8, true), 32'000, false);
  EXPECT_EQ(shape_of(graph), "d d S1 S1 R h p u G1 p u G1 ");
}

TEST(ShardTraining, LeavesAloneWhatIsNotSummed) {
  ops::Builder b("alone");
  const ir::TensorType type{ir::DType::kF32, {16}, {}};
  const Var w = b.weight("w", type, {});
  b.set_phase(ir::Phase::kUpdate);
  b.update(w, ops::sgd(w, b.input("x", type), {}).w);
  const ir::Graph graph = *b.finish({});
  EXPECT_EQ(*shard_training(graph, {.bucket = Bytes(1)}), graph);
}

}  // namespace
}  // namespace plimsoll::rewrite
