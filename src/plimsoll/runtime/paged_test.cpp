#include "plimsoll/runtime/paged.h"

#include <gtest/gtest.h>

#include "plimsoll/plan/testing/random_graph.h"
#include "plimsoll/runtime/on_demand.h"
#include "plimsoll/runtime/testing/left_behind.h"

namespace plimsoll::runtime {
namespace {

// The least capacity under which a graph runs, from the refusal of one byte.
Bytes least_capacity(const ir::Graph& graph, const ExecutorOptions& how) {
  PagingOptions paging;
  for (std::int64_t low = 0, high = std::int64_t{1} << 24;;) {
    if (high - low <= 256) return Bytes(high);
    const std::int64_t middle = low + (high - low) / 2;
    paging.capacity = Bytes(middle);
    const auto executor = make_paged(graph, paging, how);
    (executor ? high : low) = middle;
    if (!executor) {
      EXPECT_EQ(executor.error().code, ErrorCode::kDoesNotFit);
    }
  }
}

class PagedPolicy : public ::testing::TestWithParam<PagingPolicy> {};

TEST_P(PagedPolicy, LeavesTheBitsThatUnlimitedMemoryLeaves) {
  std::int64_t copied = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const ir::Graph graph = plan::random_graph(seed);
    auto unlimited = make_on_demand(graph, {.threads = 1});
    ASSERT_TRUE(unlimited) << unlimited.error().message;
    const LeftBehind expected = left_behind_after(4, **unlimited);
    for (const bool fake : {false, true}) {
      const ExecutorOptions how{
          .threads = 1,
          .poison = seed % 2 == 0,
          .backend = fake ? kernels::make_fake_backend({.seed = seed}) : nullptr};
      const Bytes least = least_capacity(graph, how);
      for (const std::int64_t percent : {100, 125, 200}) {
        for (const bool forget : {true, false}) {
          SCOPED_TRACE(testing::Message() << "seed " << seed << " fake " << fake << " " << percent
                                          << " % forget " << forget);
          PagingOptions paging;
          paging.policy = GetParam();
          paging.forget_dead = forget;
          paging.capacity = Bytes(least.value * percent / 100);
          auto executor = make_paged(graph, paging, how);
          ASSERT_TRUE(executor) << executor.error().message;
          EXPECT_TRUE(left_behind_after(4, **executor) == expected);
          const auto report = (*executor)->paging();
          ASSERT_TRUE(report);
          EXPECT_LE(report->peak, paging.capacity);
          EXPECT_LE((*executor)->peak_bytes(), paging.capacity);
          copied += (report->step.in + report->step.out).value;
        }
      }
    }
  }
  EXPECT_GT(copied, 0);
}

INSTANTIATE_TEST_SUITE_P(All, PagedPolicy,
                         ::testing::Values(PagingPolicy::kDemand, PagingPolicy::kPrefetch,
                                           PagingPolicy::kPreEvict, PagingPolicy::kBelady),
                         [](const auto& tested) {
                           return tested.param == PagingPolicy::kPreEvict
                                      ? "PreEvict"
                                      : std::string(name(tested.param));
                         });

TEST(Paged, NamesTheOperatorThatDoesNotFit) {
  PagingOptions paging;
  paging.capacity = Bytes(64);
  const auto refused = make_paged(plan::random_graph(1), paging, {.threads = 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kDoesNotFit);
  EXPECT_TRUE(refused.error().message.find("at once") != std::string::npos)
      << refused.error().message;
}

TEST(Paged, DeviceMemoryThatIsNotThereIsAnErrorBeforeTheFirstStep) {
  PagingOptions paging;
  paging.capacity = Bytes(1 << 30);
  const auto refused =
      make_paged(plan::random_graph(1), paging,
                 {.threads = 1, .backend = kernels::make_fake_backend({.memory = Bytes(256)})});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kDoesNotFit);
}

TEST(Paged, ATraceShowsNoMoreThanTheCapacity) {
  const ir::Graph graph = plan::random_graph(3);
  const ExecutorOptions plain{.threads = 1};
  const Bytes least = least_capacity(graph, plain);
  trace::Trace trace;
  PagingOptions paging;
  paging.capacity = Bytes(least.value + 512);
  auto executor = make_paged(graph, paging, {.threads = 1, .trace = &trace});
  ASSERT_TRUE(executor) << executor.error().message;
  left_behind_after(4, **executor);
  EXPECT_GT(trace::peak_live_bytes(trace).value, 0);
  EXPECT_LE(trace::peak_live_bytes(trace), paging.capacity);
}

}  // namespace
}  // namespace plimsoll::runtime
