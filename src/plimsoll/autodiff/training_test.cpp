#include "plimsoll/autodiff/training.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "plimsoll/ops/evaluation/interpreter.h"
#include "plimsoll/ops/functions.h"

namespace plimsoll::autodiff {
namespace {

using ops::Array;
using ops::Builder;
using ops::Var;

// loss = mean((x*w + b)^2) over a batch of two rows of three.
ir::Graph small_model() {
  Builder b("small");
  const Var x = b.input("x", {ir::DType::kF64, {2, 3}, {}});
  const Var w = b.weight("layer.weight", {ir::DType::kF64, {3}, {}}, {});
  const Var bias = b.weight("layer.bias", {ir::DType::kF64, {3}, {}}, {});
  const Var h = x * w + bias;
  return *b.finish({b.call1("reduce_mean", {h * h})});
}

std::unordered_map<std::string, Array> sources(const ir::Graph& graph) {
  std::unordered_map<std::string, Array> out;
  for (const ir::Value& value : graph.values) {
    if (!ir::is_source(value.kind)) continue;
    Array array(value.type);
    const bool moment = value.kind == ir::ValueKind::kOptimizer;
    for (std::int64_t i = 0; i < array.elements(); ++i)
      array.set_number(i, moment ? 0 : 0.5 + 0.25 * static_cast<double>(i % 6));
    out.emplace(value.name, std::move(array));
  }
  return out;
}

Array updated(const ir::Graph& graph, const std::string& name) {
  const auto all = ops::interpret(graph, sources(graph));
  for (const ir::Update& update : graph.updates) {
    if (graph.value(update.source).name == name) return *(*all)[update.next.index()];
  }
  return {};
}

TEST(MakeTrainingGraph, SgdTakesAStepAgainstTheGradient) {
  TrainingOptions how;
  how.optimizer = Optimizer::kSgd;
  how.learning_rate = 0.1;
  how.gradients_as_outputs = true;
  const ir::Graph graph = *make_training_graph(small_model(), how);
  ASSERT_TRUE(ops::verify(graph));
  ASSERT_EQ(graph.outputs.size(), 3u);
  const auto all = ops::interpret(graph, sources(graph));
  const Array& gradient = *(*all)[graph.outputs[1].index()];
  const Array after = updated(graph, "layer.weight");
  const Array before = sources(graph).at("layer.weight");
  for (int i = 0; i < 3; ++i)
    EXPECT_NEAR(after.number(i), before.number(i) - 0.1 * gradient.number(i), 1e-12);
}

TEST(MakeTrainingGraph, UpdatesStandRightBehindTheirGradient) {
  Builder b("deep");
  Var h = b.input("x", {ir::DType::kF64, {4}, {}});
  for (int i = 0; i < 4; ++i)
    h = ops::tanh(h * b.weight(fmt::format("w{}", i), {ir::DType::kF64, {4}, {}}, {}));
  const ir::Graph graph = *make_training_graph(*b.finish({b.call1("reduce_sum", {h})}), {});
  const auto first_update = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                         [](const ir::Node& node) { return node.op == "adamw"; });
  const auto last_backward =
      std::find_if(graph.nodes.rbegin(), graph.nodes.rend(),
                   [](const ir::Node& node) { return node.phase == ir::Phase::kBackward; });
  EXPECT_LT(first_update - graph.nodes.begin(), graph.nodes.rend() - last_backward);
}

TEST(MakeTrainingGraph, ClippingScalesByTheGlobalNorm) {
  TrainingOptions how;
  how.optimizer = Optimizer::kSgd;
  how.learning_rate = 1;
  how.clip_norm = 1e-3;
  const ir::Graph graph = *make_training_graph(small_model(), how);
  const auto before = sources(graph);
  double squares = 0;
  for (const char* name : {"layer.weight", "layer.bias"}) {
    const Array after = updated(graph, name);
    for (int i = 0; i < 3; ++i) squares += std::pow(after.number(i) - before.at(name).number(i), 2);
  }
  EXPECT_NEAR(std::sqrt(squares), 1e-3, 1e-6);
}

TEST(MakeTrainingGraph, AccumulationEqualsTheWholeBatch) {
  TrainingOptions how;
  how.optimizer = Optimizer::kSgd;
  how.learning_rate = 0.1;
  how.accumulate = 3;
  const ir::Graph micro = *make_training_graph(small_model(), how);
  EXPECT_EQ(micro.values[0].type.shape, (ir::Shape{6, 3}));

  Builder b("whole");
  const Var x = b.input("x", {ir::DType::kF64, {6, 3}, {}});
  const Var w = b.weight("layer.weight", {ir::DType::kF64, {3}, {}}, {});
  const Var bias = b.weight("layer.bias", {ir::DType::kF64, {3}, {}}, {});
  const Var h = x * w + bias;
  how.accumulate = 1;
  const ir::Graph whole = *make_training_graph(*b.finish({b.call1("reduce_mean", {h * h})}), how);
  for (const char* name : {"layer.weight", "layer.bias"}) {
    const Array a = updated(micro, name);
    const Array c = updated(whole, name);
    for (int i = 0; i < 3; ++i) EXPECT_NEAR(a.number(i), c.number(i), 1e-12);
  }
}

TEST(MakeTrainingGraph, FrozenWeightsAreNotUpdated) {
  TrainingOptions how;
  how.freeze = {"*.bias"};
  const ir::Graph graph = *make_training_graph(small_model(), how);
  for (const ir::Update& update : graph.updates)
    EXPECT_NE(graph.value(update.source).name, "layer.bias");
  how.freeze = {"*"};
  EXPECT_FALSE(make_training_graph(small_model(), how));
  how.freeze = {"nothing.like.this"};
  const auto mistaken = make_training_graph(small_model(), how);
  ASSERT_FALSE(mistaken);
  EXPECT_EQ(mistaken.error().code, ErrorCode::kUsage);
}

// As many sums as weights, and the loss: each before anybody reads it.
TEST(MakeTrainingGraph, SumsEveryGradientOverTheRanks) {
  for (const double clip : {0.0, 1.0}) {
    TrainingOptions how;
    how.ranks = 4;
    how.clip_norm = clip;
    const ir::Graph graph = *make_training_graph(small_model(), how);
    std::size_t sums = 0;
    for (const ir::Node& node : graph.nodes) {
      sums += node.op == "all_reduce";
      const bool reads_gradient = node.op == "adamw" || node.op == "sum_squares";
      if (!reads_gradient) continue;
      const ir::Value& gradient = graph.value(node.inputs[node.op == "adamw" ? 1 : 0]);
      EXPECT_EQ(graph.node(gradient.producer).op, "all_reduce");
    }
    EXPECT_EQ(sums, 3U);
    const ir::Value& loss = graph.value(graph.outputs.front());
    EXPECT_EQ(graph.node(loss.producer).op, "all_reduce");
  }
}

TEST(MakeTrainingGraph, RefusesALossThatIsNoNumber) {
  Builder b("g");
  const Var x = b.input("x", {ir::DType::kF32, {2, 3}, {}});
  EXPECT_FALSE(make_training_graph(*b.finish({x + x}), {}));
}

TEST(MatchesGlob, StarsAndQuestionMarks) {
  EXPECT_TRUE(matches_glob("encoder.*.bias", "encoder.3.attention.bias"));
  EXPECT_TRUE(matches_glob("h.?.w", "h.3.w"));
  EXPECT_FALSE(matches_glob("h.?.w", "h.33.w"));
  EXPECT_TRUE(matches_glob("*", ""));
  EXPECT_FALSE(matches_glob("", "x"));
}

}  // namespace
}  // namespace plimsoll::autodiff
