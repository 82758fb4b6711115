// Small models on the first card: the losses of the CPU, and the same bits whatever the plan.
#include <gtest/gtest.h>

#include <cmath>

#include "plimsoll/api/testing/small_run.h"

namespace plimsoll::api {
namespace {

std::shared_ptr<kernels::Backend> first_card() {
  static const auto kCard = kernels::open_cuda_backend({});
  EXPECT_TRUE(kCard) << kCard.error().message;
  return kCard ? *kCard : nullptr;
}

class CudaRuns : public ::testing::TestWithParam<const char*> {};

TEST_P(CudaRuns, LossesAreThoseOfTheCpu) {
  const auto expected = run_small(GetParam(), {});
  ASSERT_TRUE(expected) << expected.error().message;
  const auto ran = run_small(GetParam(), {.backend = first_card()});
  ASSERT_TRUE(ran) << ran.error().message;
  ASSERT_EQ(ran->report.losses.size(), expected->report.losses.size());
  for (std::size_t step = 0; step < ran->report.losses.size(); ++step) {
    const double loss = expected->report.losses[step];
    EXPECT_NEAR(ran->report.losses[step], loss, (step == 0 ? 1e-5 : 1e-3) * std::abs(loss))
        << "step " << step;
  }
}

TEST_P(CudaRuns, EveryPlanLeavesTheSameBits) {
  const auto expected = run_small(GetParam(), {.backend = first_card()});
  ASSERT_TRUE(expected) << expected.error().message;
  const std::vector<SmallRunOptions> ways = {
      {.backend = first_card()},
      {.backend = first_card(), .poison = true},
      {.backend = first_card(), .on_demand = true},
      {.backend = first_card(), .streams = 3},
  };
  for (std::size_t way = 0; way < ways.size(); ++way) {
    SCOPED_TRACE(way);
    const auto ran = run_small(GetParam(), ways[way]);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_TRUE(ran->left == expected->left);
  }
}

TEST_P(CudaRuns, PagingLeavesTheSameBits) {
  expect_paging_keeps_the_bits(GetParam(), first_card);
}

TEST(CudaBudget, SwappingToAFileKeepsTheBits) {
  const auto expected = run_small("gpt2", {.backend = first_card(), .layers = 1});
  ASSERT_TRUE(expected) << expected.error().message;
  const auto ran = run_small("gpt2", {.backend = first_card(),
                                      .budget = "80%",
                                      .swap = true,
                                      .layers = 1,
                                      .swap_file = testing::TempDir()});
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_TRUE(ran->left == expected->left);
}

TEST(CudaBudget, RecomputingAndSwappingKeepTheBits) {
  const auto expected = run_small("gpt2", {.backend = first_card(), .layers = 1});
  ASSERT_TRUE(expected) << expected.error().message;
  for (const bool swap : {false, true}) {
    const auto ran =
        run_small("gpt2", {.backend = first_card(), .budget = "80%", .swap = swap, .layers = 1});
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_TRUE(ran->left == expected->left) << "swap " << swap;
  }
}

TEST_P(CudaRuns, MeasuredBytesKeepToThePlan) {
  const auto ran = run_small(GetParam(), {.backend = first_card(), .measure = true, .steps = 4});
  ASSERT_TRUE(ran) << ran.error().message;
  ASSERT_TRUE(ran->report.measured);
  EXPECT_LE(ran->report.measured->touched, *ran->report.planned_peak);
  EXPECT_EQ(ran->report.measured->outside, Bytes(0));
}

TEST_P(CudaRuns, TrainsInBf16) {
  const auto ran = run_small(GetParam(), {.backend = first_card(), .amp = "bf16"});
  ASSERT_TRUE(ran) << ran.error().message;
  for (const double loss : ran->report.losses) EXPECT_TRUE(std::isfinite(loss));
}

INSTANTIATE_TEST_SUITE_P(Models, CudaRuns,
                         ::testing::Values("mlp", "alexnet", "resnet18", "unet", "gpt2", "bert"));

}  // namespace
}  // namespace plimsoll::api
