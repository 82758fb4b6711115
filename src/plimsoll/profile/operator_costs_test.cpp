#include "plimsoll/profile/operator_costs.h"

#include <gtest/gtest.h>

#include "plimsoll/ops/functions.h"
#include "plimsoll/ops/kernel_facts.h"

namespace plimsoll::profile {
namespace {

using ops::Builder;
using ops::Var;

schedule::DeviceProfile simple_profile() {
  schedule::DeviceProfile out;
  out.operations_per_second = {{"fp32", 1e9}};
  out.memory_bytes_per_second = 1e9;
  out.launch_seconds = 1e-3;
  return out;
}

TEST(Efficiencies, OfOneSizeEstimateAnother) {
  const auto negated = [](std::int64_t size) {
    Builder b("negated");
    return *b.finish({neg(b.input("x", {ir::DType::kF32, {size}}))});
  };
  const ir::Graph small = negated(1'000'000);
  schedule::DeviceProfile profile = simple_profile();
  // 8 MB at 1 GB/s are 8 ms; the kernel takes 16, beside the launch.
  profile.measured[ops::signature(small, small.nodes.front())] = 17e-3;
  profile.efficiency = efficiencies(small, profile);
  ASSERT_EQ(profile.efficiency.size(), 1u);
  EXPECT_NEAR(profile.efficiency.at("neg"), 0.5, 1e-12);
  const ir::Graph large = negated(10'000'000);
  const schedule::Cost cost = node_cost(profile, large, large.nodes.front());
  EXPECT_FALSE(cost.measured);
  EXPECT_NEAR(cost.seconds, 161e-3, 1e-9);
}

TEST(Efficiencies, LeaveOutWhatWasNotMeasuredOrTookNoTime) {
  Builder b("two");
  const Var x = b.input("x", {ir::DType::kF32, {1'000}});
  const ir::Graph graph = *b.finish({neg(x), exp(x)});
  schedule::DeviceProfile profile = simple_profile();
  EXPECT_TRUE(efficiencies(graph, profile).empty());
  profile.measured[ops::signature(graph, graph.nodes.front())] = 1e-4;  // below a launch
  EXPECT_TRUE(efficiencies(graph, profile).empty());
}

}  // namespace
}  // namespace plimsoll::profile
