// What a newcomer sees first: with the defaults of `run`, the loss of every built-in model falls.
//
// One batch for all steps, and the learning rate of the optimizer: whatever is wrong with a
// gradient, an update, an initialisation or a default shows as a loss that climbs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/api/testing/small_sizes.h"
#include "plimsoll/model/zoo.h"

namespace plimsoll::api {
namespace {

constexpr int kSteps = 5;

void expect_falling(const std::string& name, const model::ModelOptions& sizes,
                    const std::string& optimizer) {
  SCOPED_TRACE(name + " with " + optimizer);
  ModelRequest request;
  request.model = name;
  request.sizes = sizes;
  request.optimizer = optimizer;
  auto prepared = prepare_model(request, "cpu");
  ASSERT_TRUE(prepared) << prepared.error().message;
  RunOptions how;
  how.steps = kSteps;
  const auto report = run_on_demand(prepared->model.graph, how);
  ASSERT_TRUE(report) << report.error().message;
  ASSERT_EQ(report->losses.size(), static_cast<std::size_t>(kSteps));
  for (const double loss : report->losses) EXPECT_TRUE(std::isfinite(loss)) << loss;
  EXPECT_LT(report->losses.back(), report->losses.front())
      << fmt::format("{}", fmt::join(report->losses, ", "));
}

// Batch norm needs more than one element of a channel where a map has shrunk to one pixel.
model::ModelOptions with_a_batch(model::ModelOptions sizes) {
  if (sizes.batch) sizes.batch = 4;
  return sizes;
}

TEST(LossesFall, ForEveryModelInFiveSteps) {
  ASSERT_GE(model::models().size(), 19u);
  for (const model::ModelInfo& info : model::models())
    expect_falling(info.name, with_a_batch(small_sizes(info.name)), "adamw");
}

TEST(LossesFall, WithEveryOptimizer) {
  for (const char* optimizer : {"sgd", "momentum", "adam"}) {
    for (const char* name : {"exp-example", "mlp", "alexnet", "resnet18", "lstm", "gpt2", "bert"})
      expect_falling(name, with_a_batch(small_sizes(name)), optimizer);
  }
}

// Every layer as wide and as deep as published; only what is fed is small.
model::ModelOptions real_width(const std::string& name) {
  if (name == "exp-example") return {};
  if (name == "mlp") return {.batch = 8};
  if (name == "lstm") return {.batch = 4, .seq = 8};
  if (name == "gpt2" || name == "bert" || name == "moe") return {.batch = 2, .seq = 64};
  if (name == "whisper-small") return {.batch = 1, .seq = 32, .frames = 200};
  if (name == "resnet") return {.batch = 4, .image = 64, .depth = 65};
  return {.batch = 4, .image = 64};
}

class SlowLossesFall : public ::testing::TestWithParam<std::string> {};

TEST_P(SlowLossesFall, AtRealWidths) {
  expect_falling(GetParam(), real_width(GetParam()), "adamw");
}

// Those without normalisation, which bear the least.
TEST(SlowLosses, WithEveryOptimizerAtRealWidths) {
  for (const char* optimizer : {"sgd", "momentum", "adam"}) {
    for (const char* name : {"alexnet", "vgg16", "lstm"})
      expect_falling(name, real_width(name), optimizer);
  }
}

std::vector<std::string> all_models() {
  std::vector<std::string> out;
  for (const model::ModelInfo& info : model::models()) out.push_back(info.name);
  return out;
}

INSTANTIATE_TEST_SUITE_P(Zoo, SlowLossesFall, ::testing::ValuesIn(all_models()),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace plimsoll::api
