// Layouts by price on whole training graphs: never slower than the rule's by the profile that they
// were chosen with, and another graph where a profile knows better.
#include "plimsoll/api/fit_to_backend.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/api/testing/small_sizes.h"
#include "plimsoll/kernels/backend/paper_card.h"
#include "plimsoll/ops/kernel_facts.h"
#include "plimsoll/profile/operator_costs.h"

namespace plimsoll::api {
namespace {

ir::Graph training_step(const std::string& name) {
  ModelRequest request;
  request.model = name;
  request.sizes = small_sizes(name);
  request.train = true;
  request.threads = 1;
  const auto model = load_model(request);
  EXPECT_TRUE(model) << model.error().message;
  return model ? model->graph : ir::Graph{};
}

std::shared_ptr<kernels::Backend> backend_of_profile(const std::string& device) {
  if (device == "cpu") return kernels::make_cpu_backend(1);
  return kernels::make_paper_card({device, "sm_90", "cuDNN 9", 1_GiB, {}});
}

double step_seconds(const ir::Graph& graph, const schedule::DeviceProfile& profile) {
  double out = 0;
  for (const ir::Node& node : graph.nodes) out += profile::node_cost(profile, graph, node).seconds;
  return out;
}

std::int64_t conversions(const ir::Graph& graph) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [](const ir::Node& node) { return node.op == "reorder"; });
}

std::int64_t turned_convolutions(const ir::Graph& graph) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const ir::Node& node) {
    return node.op.starts_with("conv") &&
           graph.value(node.inputs[0]).type.layout == ir::Layout::channels_last(4);
  });
}

TEST(FitToBackend, LayoutsByPriceAreNoSlowerThanByRule) {
  for (const char* device : {"cpu", "h200"}) {
    const schedule::DeviceProfile& profile = *schedule::shipped_profile(device);
    const auto backend = backend_of_profile(device);
    for (const char* name : {"resnet18", "alexnet", "mobilenet", "unet", "whisper-small", "gpt2"}) {
      SCOPED_TRACE(fmt::format("{} on {}", name, device));
      const ir::Graph graph = training_step(name);
      const auto by_rule = fit_to_backend(graph, *backend);
      const auto by_price = fit_to_backend(graph, *backend, &profile);
      ASSERT_TRUE(by_rule && by_price);
      EXPECT_LE(step_seconds(*by_price, profile), step_seconds(*by_rule, profile));
    }
  }
}

// Where every operator was measured in both layouts and row-major took half, nothing is turned;
// where it took so long that no weight is worth leaving alone, all convolutions are that the rule
// turns.
TEST(FitToBackend, WhatWasMeasuredBothWaysDecides) {
  const ir::Graph graph = training_step("resnet18");
  const auto backend = kernels::make_cpu_backend(1);
  const auto by_rule = fit_to_backend(graph, *backend);
  const auto others = fit_to_other_layouts(graph, *backend);
  ASSERT_TRUE(by_rule && others);
  ASSERT_GT(conversions(*by_rule), 0);
  for (const double row_major : {0.5, 100.0}) {
    schedule::DeviceProfile profile = *schedule::shipped_profile("cpu");
    const auto measure = [&](const ir::Graph& laid, double factor) {
      for (const ir::Node& node : laid.nodes) {
        if (node.op == "reorder") continue;
        const double seconds =
            profile::node_cost(*schedule::shipped_profile("cpu"), laid, node).seconds;
        profile.measured.emplace(ops::signature(laid, node), seconds * factor);
      }
    };
    measure(*by_rule, 1);
    measure(others->front(), row_major);
    const auto by_price = fit_to_backend(graph, *backend, &profile);
    ASSERT_TRUE(by_price) << by_price.error().message;
    if (row_major < 1) {
      EXPECT_LT(conversions(*by_price), conversions(*by_rule) / 4);
      EXPECT_LT(step_seconds(*by_price, profile), 0.8 * step_seconds(*by_rule, profile));
    } else {
      EXPECT_EQ(turned_convolutions(*by_price), turned_convolutions(*by_rule));
    }
  }
}

}  // namespace
}  // namespace plimsoll::api
