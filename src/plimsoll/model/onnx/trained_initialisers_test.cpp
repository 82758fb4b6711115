// Which initialisers of a file training takes for weights, and how often.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "plimsoll/model/onnx/testing/file_pieces.h"
#include "plimsoll/model/onnx_import.h"

namespace plimsoll::model::onnx {
namespace {

using namespace file_pieces;

std::string floats(const std::vector<float>& list) {
  return {reinterpret_cast<const char*>(list.data()), list.size() * sizeof(float)};
}

std::string weight(std::string_view name, const std::vector<std::int64_t>& dims,
                   const std::vector<float>& numbers) {
  return tensor(name, 1, dims, floats(numbers));
}

Result<ImportedModel> imported(const std::string& file, bool training, bool untie = false,
                               bool keeps_weights = false) {
  ImportOptions how;
  how.training = training;
  how.keeps_weights = keeps_weights;
  how.untie = untie;
  return import_onnx_bytes({reinterpret_cast<const std::byte*>(file.data()), file.size()}, how);
}

std::set<std::string> sources(const ir::Graph& graph, ir::ValueKind kind) {
  std::set<std::string> out;
  for (const ir::Value& value : graph.values) {
    if (value.kind == kind) out.insert(value.name);
  }
  return out;
}

// x + b + b, the second time under another name, as the older exporter of PyTorch writes it.
std::string shared_bias() {
  return model(graph(
      {.nodes = {node("Add", {"x", "a.bias"}, {"h"}), node("Identity", {"a.bias"}, {"b.bias"}),
                 node("Add", {"h", "b.bias"}, {"y"})},
       .initializers = {weight("a.bias", {3}, {1, 2, 3})}}));
}

TEST(TrainedInitialisers, OneThatStandsTwiceIsOneWeightAndIsCounted) {
  const std::string file = shared_bias();
  const auto model = imported(file, true);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(sources(model->graph, ir::ValueKind::kWeight), (std::set<std::string>{"a.bias"}));
  EXPECT_EQ(model->trained.weights, 1);
  EXPECT_EQ(model->trained.places, 2);
  EXPECT_EQ(model->trained.shared, 1);
  EXPECT_EQ(model->trained.most_shared, "a.bias");
  EXPECT_EQ(model->trained.most_places, 2);
}

TEST(TrainedInitialisers, UntiedEveryPlaceHasItsOwnUnderItsName) {
  const std::string file = shared_bias();
  const auto model = imported(file, true, true);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(sources(model->graph, ir::ValueKind::kWeight),
            (std::set<std::string>{"a.bias", "b.bias"}));
  for (const char* name : {"a.bias", "b.bias"}) {
    const auto* entry = model->weights.find(name);
    ASSERT_NE(entry, nullptr) << name;
    EXPECT_EQ(ops::Array::from_bytes(entry->type, entry->bytes)->reals,
              (std::vector<double>{1, 2, 3}));
  }
}

// What was trained is loaded for inference by the same names.
TEST(TrainedInitialisers, InferenceThatKeepsWeightsHasThemAll) {
  const std::string folded = model(
      graph({.nodes = {node("Add", {"table", "row"}, {"sum"}), node("Add", {"x", "sum"}, {"y"})},
             .initializers = {weight("table", {3}, {1, 2, 3}), weight("row", {1}, {4})}}));
  for (const std::string& file : {shared_bias(), folded}) {
    for (const bool untie : {false, true}) {
      const auto trained = imported(file, true, untie);
      const auto inferred = imported(file, false, untie, true);
      ASSERT_TRUE(trained && inferred);
      EXPECT_EQ(sources(inferred->graph, ir::ValueKind::kWeight),
                sources(trained->graph, ir::ValueKind::kWeight));
    }
  }
}

TEST(TrainedInitialisers, OneNodeThatReadsItTwiceIsOnePlace) {
  const std::string file = model(
      graph({.nodes = {node("Mul", {"w", "w"}, {"square"}), node("Add", {"x", "square"}, {"y"})},
             .initializers = {weight("w", {3}, {1, 2, 3})}}));
  const auto model = imported(file, true, true);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(sources(model->graph, ir::ValueKind::kWeight), (std::set<std::string>{"w"}));
  EXPECT_EQ(model->trained.shared, 0);
}

TEST(TrainedInitialisers, WithoutTrainingNothingIsUntiedOrCounted) {
  const std::string file = shared_bias();
  const auto model = imported(file, false, true);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(model->trained.weights, 0);
  EXPECT_EQ(sources(model->graph, ir::ValueKind::kWeight).count("b.bias"), 0U);
}

// What training makes of `name`, beside a weight that is one for certain.
bool is_trained(const std::string& name, const std::vector<std::string>& nodes,
                std::vector<std::string> initializers) {
  std::vector<std::string> all = nodes;
  all.push_back(node("Add", {"h", "fc.weight"}, {"y"}));
  initializers.push_back(weight("fc.weight", {3}, {0.1F, -0.2F, 0.3F}));
  const std::string file = model(graph({.nodes = all, .initializers = initializers}));
  const auto model = imported(file, true);
  EXPECT_TRUE(model) << model.error().message;
  if (!model) return false;
  const auto weights = sources(model->graph, ir::ValueKind::kWeight);
  EXPECT_EQ(weights.count("fc.weight"), 1U) << name;
  std::int64_t left_out = 0;
  for (const auto& [why, many] : model->trained.not_trained) left_out += many;
  EXPECT_EQ(left_out > 0, weights.count(name) == 0) << name;
  return weights.count(name) > 0;
}

TEST(TrainedInitialisers, NamesOfBuffersAndSettingsOfOperatorsAreNotTrained) {
  const std::vector<float> three{0.5F, 1.5F, 2.5F};
  EXPECT_TRUE(is_trained("a.scale", {node("Mul", {"x", "a.scale"}, {"h"})},
                         {weight("a.scale", {3}, three)}));
  EXPECT_FALSE(is_trained("rotary.inv_freq", {node("Mul", {"x", "rotary.inv_freq"}, {"h"})},
                          {weight("rotary.inv_freq", {3}, three)}));
  EXPECT_FALSE(is_trained("exponent", {node("Pow", {"x", "exponent"}, {"h"})},
                          {weight("exponent", {3}, three)}));
  EXPECT_TRUE(
      is_trained("base", {node("Pow", {"base", "x"}, {"h"})}, {weight("base", {3}, three)}));
  // one use as a setting and one as a weight: a weight
  EXPECT_TRUE(is_trained("both",
                         {node("Pow", {"x", "both"}, {"g"}), node("Mul", {"g", "both"}, {"h"})},
                         {weight("both", {3}, three)}));
  // one number: the exporter's own, or a parameter of the model
  EXPECT_FALSE(is_trained("onnx::Mul_17", {node("Mul", {"x", "onnx::Mul_17"}, {"h"})},
                          {weight("onnx::Mul_17", {1}, {0.125F})}));
  EXPECT_TRUE(is_trained("block.alpha", {node("Mul", {"x", "block.alpha"}, {"h"})},
                         {weight("block.alpha", {1}, {0.125F})}));
}

TEST(TrainedInitialisers, WhatGoesIntoWavesWithPositionsIsNotTrainedButWithDataItIs) {
  const auto through = [](const std::string& other, const std::vector<std::string>& before) {
    std::vector<std::string> nodes = before;
    nodes.push_back(node("Mul", {other, "f"}, {"angle"}));
    nodes.push_back(node("Cos", {"angle"}, {"cos"}));
    nodes.push_back(node("Mul", {"x", "cos"}, {"h"}));
    return nodes;
  };
  const std::string f = weight("f", {3}, {1, 0.1F, 0.01F});
  const std::string positions = tensor("positions", 7, {2, 1}, int64s({0, 1}));
  EXPECT_FALSE(is_trained(
      "f", through("p", {node("Cast", {"positions"}, {"p"}, {integer("to", 1)})}), {f, positions}));
  // sin(w x): layers of that kind are trained
  EXPECT_TRUE(is_trained("f", through("x", {}), {f}));
}

TEST(TrainedInitialisers, TablesOfSinesBesideCosinesAreNotTrainedButOnesBesideZerosAre) {
  std::vector<float> sines;
  std::vector<float> cosines;
  std::vector<float> both;
  for (int i = 0; i < 12; ++i) {
    sines.push_back(static_cast<float>(std::sin(0.37 * i)));
    cosines.push_back(static_cast<float>(std::cos(0.37 * i)));
  }
  for (int row = 0; row < 2; ++row) {
    for (int i = 0; i < 6; ++i) {
      const double angle = 0.7 * row + 0.2 * (i % 3);
      both.push_back(static_cast<float>(i < 3 ? std::sin(angle) : std::cos(angle)));
    }
  }
  const std::vector<std::string> nodes{
      node("ReduceSum", {"a"}, {"sum.a"}), node("ReduceSum", {"b"}, {"sum.b"}),
      node("Mul", {"x", "sum.a"}, {"g"}), node("Add", {"g", "sum.b"}, {"h"})};
  EXPECT_FALSE(is_trained("a", nodes, {weight("a", {4, 3}, sines), weight("b", {4, 3}, cosines)}));
  const std::vector<float> ones(12, 1);
  const std::vector<float> zeros(12, 0);
  EXPECT_TRUE(is_trained("a", nodes, {weight("a", {4, 3}, ones), weight("b", {4, 3}, zeros)}));
  EXPECT_FALSE(is_trained("a", {node("ReduceSum", {"a"}, {"s"}), node("Mul", {"x", "s"}, {"h"})},
                          {weight("a", {2, 6}, both)}));
}

// An exporter that stores equal tensors once makes one of two layers' running means, and of a bias.
TEST(TrainedInitialisers, RunningStatisticsAreStateOfEveryLayerByItself) {
  const auto norm = [](const std::string& from, const std::string& to) {
    return node("BatchNormalization", {from, "one", "zero", "zero", "one"},
                {to, to + "m", to + "v"}, {integer("training_mode", 1)});
  };
  const std::string file = model(
      graph({.nodes = {norm("x", "h"), norm("h", "y")},
             .initializers = {weight("one", {3}, {1, 1, 1}), weight("zero", {3}, {0, 0, 0})}}));
  const auto model = imported(file, true);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ(sources(model->graph, ir::ValueKind::kWeight).size(), 2U);
  EXPECT_EQ(sources(model->graph, ir::ValueKind::kState).size(), 4U);
  EXPECT_EQ(model->graph.updates.size(), 4U);
}

}  // namespace
}  // namespace plimsoll::model::onnx
