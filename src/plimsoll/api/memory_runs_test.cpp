// Plans for several memories, run for real: on the CPU every memory is an arena of its own, and the
// bits are those of a run without a plan.
#include <gtest/gtest.h>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/api/testing/same_bits.h"
#include "plimsoll/api/testing/small_sizes.h"

namespace plimsoll::api {
namespace {

schedule::DeviceProfile with_memories(schedule::DeviceProfile profile,
                                      const std::vector<Bytes>& sizes) {
  for (const Bytes bytes : sizes) {
    profile.memories.push_back(
        {fmt::format("fast{}", profile.memories.size()), bytes, 200e9, 200e9, {50e9, 50e9, 1e-7}});
  }
  return profile;
}

TEST(MemoryRuns, TwoAndThreeArenasLeaveTheSameBits) {
  std::int64_t copies = 0;
  for (const std::string name : {"mlp", "resnet18", "gpt2"}) {
    for (const bool train : {false, true}) {
      for (const std::vector<Bytes>& sizes :
           {std::vector<Bytes>{256_KiB}, std::vector<Bytes>{64_KiB, 1_MiB}}) {
        SCOPED_TRACE(fmt::format("{} train={} memories={}", name, train, sizes.size()));
        ModelRequest request;
        request.model = name;
        request.sizes = small_sizes(name);
        request.train = train;
        request.threads = 1;
        auto prepared = prepare_model(request, "cpu");
        ASSERT_TRUE(prepared) << prepared.error().message;
        prepared->profile = with_memories(prepared->profile, sizes);
        PlanOptions how;
        how.compare = false;
        const auto planned = plan_model(*prepared, how);
        ASSERT_TRUE(planned) << planned.error().message;
        ASSERT_TRUE(planned->summary.placement);
        EXPECT_LE(planned->summary.placement->seconds, planned->summary.placement->greedy_seconds);
        for (const plan::PlanStep& step : planned->plan.steps) copies += !step.node.valid();
        const auto expected = run_on_demand_for(prepared->model.graph, 2);
        ASSERT_TRUE(expected) << expected.error().message;
        const auto got = run_planned_for(planned->plan, 2);
        ASSERT_TRUE(got) << got.error().message;
        EXPECT_TRUE(*got == *expected);
      }
    }
  }
  EXPECT_GT(copies, 100);
}

}  // namespace
}  // namespace plimsoll::api
