#include "plimsoll/api/oversubscribe.h"

#include <gtest/gtest.h>

#include "plimsoll/api/run_model.h"
#include "plimsoll/api/testing/small_run.h"

namespace plimsoll::api {
namespace {

OversubscribeRequest oversubscribed(const std::string& model,
                                    std::shared_ptr<kernels::Backend> backend) {
  OversubscribeRequest out;
  out.model = small_request(model);
  out.planning.device = "cpu";
  out.planning.deterministic = true;
  out.factors = "0.7,0.9";  // a small network's operators take much of it at once
  out.policies = "uvm,demand+dead,demand,prefetch,pre-evict,belady,planned";
  out.steps = 3;
  out.backend = std::move(backend);
  return out;
}

// Losses are compared inside: a policy that changes one bit is an error.
TEST(Oversubscribe, RunsEveryPolicyWithinItsCapacity) {
  const auto found = oversubscribe(oversubscribed("mlp", nullptr));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->points.size(), 14U);
  EXPECT_EQ(found->policies().size(), 7U);
  int ran = 0;
  for (const report::OversubscriptionPoint& point : found->points) {
    SCOPED_TRACE(point.policy);
    EXPECT_EQ(point.model, point.policy == "uvm");
    if (!point.refused.empty()) continue;
    ++ran;
    EXPECT_GT(point.seconds, 0);
    EXPECT_GE(point.bound, 1);
    if (point.policy.find("+dead") == std::string::npos) {
      EXPECT_EQ(point.dead_evictions, 0);
    }
  }
  EXPECT_GE(ran, 10);
  const std::string svg = to_svg(*found);
  EXPECT_TRUE(svg.starts_with("<svg") && svg.find("uvm (a model)") != std::string::npos);
  EXPECT_TRUE(to_html(*found).find("<table>") != std::string::npos);
}

TEST(Oversubscribe, RunsOnADeviceThatBehavesAsAGpu) {
  OversubscribeRequest request = oversubscribed("mlp", kernels::make_fake_backend({.seed = 7}));
  request.factors = "0.8";
  request.policies = "uvm,demand,belady";  // no plan: operators of this device are not worth timing
  const auto found = oversubscribe(request);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->device, "fake");
}

TEST(Oversubscribe, RefusesWhatItDoesNotUnderstand) {
  for (const auto& [factors, policies] : std::vector<std::pair<std::string, std::string>>{
           {"1,x", "demand"}, {"-1", "demand"}, {"", "demand"}, {"1", "lru"}, {"1", ""}}) {
    OversubscribeRequest request = oversubscribed("mlp", nullptr);
    request.factors = factors;
    request.policies = policies;
    const auto refused = oversubscribe(request);
    ASSERT_FALSE(refused) << factors << " " << policies;
    EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  }
}

RunRequest paged(const std::string& policy, const std::string& capacity) {
  RunRequest out;
  out.model = small_request("mlp");
  out.planning.deterministic = true;
  out.paging.policy = policy;
  out.paging.capacity = capacity;
  out.steps = 4;
  return out;
}

TEST(PagedRun, GoesOnByAPlanWithTheStateOfTheFirstStep) {
  RunRequest plain = paged("", "");
  plain.executor = "on-demand";
  const auto expected = run_model(plain);
  ASSERT_TRUE(expected) << expected.error().message;
  const Bytes all = expected->peak;
  for (const std::string policy : {"demand", "belady", "planned"}) {
    SCOPED_TRACE(policy);
    RunRequest request = paged(policy, std::to_string(all.value * 9 / 10));
    if (policy == "planned") request.planning.techniques = "all";
    const auto report = run_model(request);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->losses, expected->losses);
    EXPECT_LE(report->peak.value, all.value * 9 / 10);
    ASSERT_TRUE(report->paging);
    EXPECT_EQ(report->planned_peak.has_value(), policy == "planned");
  }
}

TEST(PagedRun, OptionsThatDoNotGoTogetherAreRefused) {
  const auto refuses = [](RunRequest request) {
    const auto refused = run_model(request);
    return !refused && refused.error().code == ErrorCode::kUsage;
  };
  EXPECT_TRUE(refuses(paged("demand", "")));
  EXPECT_TRUE(refuses(paged("", "1MiB")));
  EXPECT_TRUE(refuses(paged("fifo", "1MiB")));
  RunRequest budget = paged("demand", "1MiB");
  budget.planning.budget = "50%";
  EXPECT_TRUE(refuses(budget));
  RunRequest techniques = paged("demand", "1MiB");
  techniques.planning.techniques = "swap";
  EXPECT_TRUE(refuses(techniques));
  const auto small_capacity = run_model(paged("demand", "100"));
  ASSERT_FALSE(small_capacity);
  EXPECT_EQ(small_capacity.error().code, ErrorCode::kDoesNotFit);
}

}  // namespace
}  // namespace plimsoll::api
