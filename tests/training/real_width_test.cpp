// The CPU kernels at real widths agree with PyTorch in fp32: the loss of the first step, and every
// weight's gradient. tests/references/*_fp32.json hold PyTorch's numbers: of each gradient t its
// norm and its products with four given vectors r, uniform in [-1, 1). From those the angle between
// t and ours can be estimated: for a difference e, a
// product <e, r> has the size |e| / sqrt(3), and a cosine of 0.99 allows |e| up to 0.141 |t|.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/autodiff/training.h"
#include "plimsoll/base/threads.h"
#include "plimsoll/model/zoo.h"
#include "plimsoll/rewrite/simplify.h"
#include "plimsoll/runtime/layout_copy.h"
#include "plimsoll/runtime/on_demand.h"
#include "reference_file.h"

namespace plimsoll {
namespace {

using reference::Json;

std::vector<float> floats_of(runtime::Executor& executor, ValueId output) {
  const ir::TensorType& type = executor.graph().value(output).type;
  const std::vector<std::byte> bytes =
      runtime::copy_to_row_major(type, executor.result(output).value());
  std::vector<float> out(bytes.size() / sizeof(float));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

void expect_same_direction(const std::vector<float>& gradient, const Json& expected) {
  const std::string name = expected["name"];
  const double norm = expected["norm"];
  double squares = 0;
  for (const float value : gradient) squares += static_cast<double>(value) * value;
  // What is zero in theory is rounding noise on both sides.
  if (norm < 1e-6) {
    EXPECT_LT(std::sqrt(squares), 1e-4) << name;
    return;
  }
  EXPECT_NEAR(std::sqrt(squares), norm, 0.05 * norm) << name << " norm";
  double off = 0;
  const std::size_t products = expected["dots"].size();
  for (std::size_t k = 0; k < products; ++k) {
    const std::vector<double> vector = reference::uniform(
        fmt::format("{}#{}", name, k), static_cast<std::int64_t>(gradient.size()));
    double dot = 0;
    for (std::size_t i = 0; i < vector.size(); ++i) dot += gradient[i] * vector[i];
    off += std::pow(dot - expected["dots"][k].get<double>(), 2);
  }
  const double difference = std::sqrt(3 * off / static_cast<double>(products));
  EXPECT_LT(difference, 0.141 * norm) << name << " direction";
}

void expect_agreement(const std::string& name) {
  const auto read = reference::read_reference(name + "_fp32");
  ASSERT_TRUE(read) << read.error().message;
  const Json& expected_numbers = *read;
  auto forward = model::build_model(expected_numbers["model"].get<std::string>(),
                                    reference::options_of(expected_numbers, ir::DType::kF32));
  ASSERT_TRUE(forward) << forward.error().message;
  auto simplified = rewrite::simplify(*forward);
  ASSERT_TRUE(simplified) << simplified.error().message;
  autodiff::TrainingOptions training;
  training.optimizer = autodiff::Optimizer::kSgd;
  training.gradients_as_outputs = true;
  const std::vector<ValueId> weights = autodiff::trained_weights(*simplified, training);
  auto step = autodiff::make_training_graph(*simplified, training);
  ASSERT_TRUE(step) << step.error().message;
  auto graph = api::assign_layouts(*step, resolve_threads(0));
  ASSERT_TRUE(graph) << graph.error().message;

  auto executor = runtime::make_on_demand(*graph, {});
  ASSERT_TRUE(executor) << executor.error().message;
  for (std::size_t v = 0; v < graph->values.size(); ++v) {
    const ir::Value& value = graph->values[v];
    if (!ir::is_source(value.kind) || value.kind == ir::ValueKind::kConstant) continue;
    ASSERT_TRUE((*executor)->write(ValueId(v), [&](std::span<std::byte> memory) -> Status {
      runtime::copy_from_row_major(
          value.type, reference::content_of(value, expected_numbers).to_bytes(), memory);
      return {};
    }));
  }
  ASSERT_TRUE((*executor)->step());

  const double loss = expected_numbers["loss"];
  EXPECT_NEAR(floats_of(**executor, graph->outputs[0])[0], loss, 1e-5 * std::abs(loss));
  std::map<std::string, ValueId> gradients;
  for (std::size_t i = 0; i < weights.size(); ++i)
    gradients[simplified->value(weights[i]).name] = graph->outputs[i + 1];
  ASSERT_EQ(weights.size(), expected_numbers["gradients"].size());
  for (const Json& expected : expected_numbers["gradients"]) {
    const auto place = gradients.find(expected["name"].get<std::string>());
    ASSERT_NE(place, gradients.end()) << expected["name"];
    expect_same_direction(floats_of(**executor, place->second), expected);
  }
}

TEST(RealWidths, Resnet18) {
  expect_agreement("resnet18");
}
TEST(RealWidths, Lstm) {
  expect_agreement("lstm");
}
TEST(SlowRealWidths, Alexnet) {
  expect_agreement("alexnet");
}
TEST(SlowRealWidths, Resnet50) {
  expect_agreement("resnet50");
}
TEST(SlowRealWidths, Gpt2) {
  expect_agreement("gpt2");
}
TEST(SlowRealWidths, Bert) {
  expect_agreement("bert");
}
TEST(SlowRealWidths, Whisper) {
  expect_agreement("whisper");
}

}  // namespace
}  // namespace plimsoll
