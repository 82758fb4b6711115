// Training agrees with PyTorch: small networks in fp64 on the definitions' reference evaluation
// (there are no kernels in fp64; kernels_fp32_test.cpp compares those), from weights and data that
// both sides compute from the same formula. tests/references/*.json hold what PyTorch made of them
// (tools/references/make_references.py): the loss, every weight's gradient as its norm and its
// product with a given vector, and the losses of five steps.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <unordered_map>

#include "plimsoll/autodiff/training.h"
#include "plimsoll/model/zoo.h"
#include "plimsoll/ops/evaluation/interpreter.h"
#include "reference_file.h"

namespace plimsoll {
namespace {

using reference::Json;
using Sources = std::unordered_map<std::string, ops::Array>;

constexpr double kRelative = 1e-7;
constexpr double kZero = 1e-12;  // for what is zero in theory

Sources first_sources(const ir::Graph& graph, const Json& reference) {
  Sources out;
  for (const ir::Value& value : graph.values) {
    if (!ir::is_source(value.kind) || value.kind == ir::ValueKind::kConstant) continue;
    out[value.name] = reference::content_of(value, reference);
  }
  return out;
}

// The loss of every step; the sources move on.
std::vector<double> losses_of(const ir::Graph& graph, Sources sources, std::size_t steps) {
  std::vector<double> out;
  for (std::size_t step = 0; step < steps; ++step) {
    const auto values = ops::interpret(graph, sources);
    EXPECT_TRUE(values) << values.error().message;
    if (!values) return out;
    out.push_back((*values)[graph.outputs[0].index()]->number(0));
    for (const ir::Update& update : graph.updates)
      sources[graph.value(update.source).name] = *(*values)[update.next.index()];
  }
  return out;
}

void expect_close(double actual, double expected, const std::string& what) {
  EXPECT_NEAR(actual, expected, kRelative * std::abs(expected) + kZero) << what;
}

void expect_same_gradient(const ops::Array& gradient, const Json& expected) {
  const std::string name = expected["name"];
  const std::vector<double> vector = reference::uniform(name + "#0", gradient.elements());
  double squares = 0;
  double dot = 0;
  for (std::size_t i = 0; i < vector.size(); ++i) {
    squares += gradient.reals[i] * gradient.reals[i];
    dot += gradient.reals[i] * vector[i];
  }
  const double norm = expected["norm"];
  expect_close(std::sqrt(squares), norm, name + " norm");
  // The product may cancel to far below the gradient's size.
  EXPECT_NEAR(dot, expected["dots"][0].get<double>(), kRelative * norm + kZero)
      << name << " product";
}

class TrainingReference : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto read = reference::read_reference(std::string(GetParam()) + "_fp64");
    ASSERT_TRUE(read) << read.error().message;
    reference_ = *std::move(read);
    auto graph = model::build_model(reference_["model"].get<std::string>(),
                                    reference::options_of(reference_, ir::DType::kF64));
    ASSERT_TRUE(graph) << graph.error().message;
    forward_ = *std::move(graph);
  }

  ir::Graph step(const autodiff::TrainingOptions& options) const {
    auto graph = autodiff::make_training_graph(forward_, options);
    EXPECT_TRUE(graph) << graph.error().message;
    return graph ? *std::move(graph) : ir::Graph{};
  }

  void expect_losses(const ir::Graph& graph, const Json& expected) const {
    const std::vector<double> losses =
        losses_of(graph, first_sources(graph, reference_), expected.size());
    ASSERT_EQ(losses.size(), expected.size());
    for (std::size_t i = 0; i < losses.size(); ++i)
      expect_close(losses[i], expected[i], fmt::format("loss of step {}", i));
  }

  Json reference_;
  ir::Graph forward_;
};

TEST_P(TrainingReference, LossAndEveryGradientAgree) {
  autodiff::TrainingOptions options;
  options.gradients_as_outputs = true;
  const ir::Graph graph = step(options);
  const auto values = ops::interpret(graph, first_sources(graph, reference_));
  ASSERT_TRUE(values) << values.error().message;
  expect_close((*values)[graph.outputs[0].index()]->number(0), reference_["loss"], "loss");

  const std::vector<ValueId> weights = autodiff::trained_weights(forward_, {});
  ASSERT_EQ(weights.size(), reference_["gradients"].size());
  ASSERT_EQ(graph.outputs.size(), 1 + weights.size());
  std::map<std::string, ValueId> gradients;
  for (std::size_t i = 0; i < weights.size(); ++i)
    gradients[forward_.value(weights[i]).name] = graph.outputs[i + 1];
  for (const Json& expected : reference_["gradients"]) {
    const auto place = gradients.find(expected["name"].get<std::string>());
    ASSERT_NE(place, gradients.end()) << expected["name"];
    expect_same_gradient(*(*values)[place->second.index()], expected);
  }
}

TEST_P(TrainingReference, FiveStepsOfSgdAgree) {
  autodiff::TrainingOptions options;
  options.optimizer = autodiff::Optimizer::kSgd;
  options.learning_rate = reference_["sgd"]["lr"];
  expect_losses(step(options), reference_["sgd"]["losses"]);
}

TEST_P(TrainingReference, FiveStepsOfAdamWAgree) {
  autodiff::TrainingOptions options;
  options.optimizer = autodiff::Optimizer::kAdamW;
  options.learning_rate = reference_["adamw"]["lr"];
  options.weight_decay = reference_["adamw"]["weight_decay"];
  expect_losses(step(options), reference_["adamw"]["losses"]);
}

INSTANTIATE_TEST_SUITE_P(PyTorch, TrainingReference,
                         ::testing::Values("mlp", "alexnet", "resnet18", "resnet50", "lstm", "gpt2",
                                           "bert", "whisper", "moe"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace plimsoll
