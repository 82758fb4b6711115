#include "plimsoll/profile/operator_costs.h"

#include <gtest/gtest.h>

#include "plimsoll/codec/weights/form_work.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/ops/kernel_facts.h"
#include "plimsoll/ops/products/encoded_weight.h"

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

TEST(SecondsByWeight, AreThoseOfAllThatReadIt) {
  const auto of = [](bool encoded) {
    Builder b("two layers");
    const Var x = b.input("x", {ir::DType::kF32, {1, 256}});
    const Var w =
        encoded ? ops::decode_weight(b.weight("w", {ir::DType::kU8, {256 * 256 + 64}}, {}),
                                     ops::encoded_attributes({256, 256}, ir::DType::kF32, "int8"))
                : b.weight("w", {ir::DType::kF32, {256, 256}}, {});
    const Var bias = b.weight("bias", {ir::DType::kF32, {256}}, {});
    const auto graph = b.finish({linear(linear(x, w, bias), w)});
    EXPECT_TRUE(graph) << graph.error().message;
    return *graph;
  };
  const schedule::DeviceProfile profile = simple_profile();
  const auto plain = seconds_by_weight(of(false), profile);
  EXPECT_NEAR(plain.at("w"), 2 * (1e-3 + 256 * 256 * 4 / 1e9), 1e-5) << "two products";
  EXPECT_NEAR(plain.at("bias"), plain.at("w") / 2, 1e-5);
  const auto decoded = seconds_by_weight(of(true), profile);
  const double decoding = 256 * 256 * codec::work_of_form("int8").decode / 1e9;
  EXPECT_NEAR(decoded.at("w") - plain.at("w"), 1e-3 + decoding, 1e-5);
}

}  // namespace
}  // namespace plimsoll::profile
