#include "plimsoll/runtime/call_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/kernels/cpu/cpu_kernels.h"
#include "plimsoll/plan/make_plan.h"
#include "plimsoll/plan/streams.h"
#include "plimsoll/plan/testing/random_graph.h"
#include "plimsoll/runtime/initial_content.h"
#include "plimsoll/runtime/planned.h"
#include "plimsoll/runtime/testing/trace_departures.h"
#include "plimsoll/schedule/fit.h"

namespace plimsoll::runtime {
namespace {

using ::testing::ElementsAre;

// "10 +y@64", "20 -y@64", "10 conv"
std::vector<std::string> told(const trace::Trace& trace) {
  std::vector<std::string> out;
  for (const trace::Event& event : trace.events) {
    const std::string_view name = trace.strings.text(event.name);
    if (event.kind == trace::EventKind::kOperator) {
      out.push_back(fmt::format("{} {}", event.start, name));
    } else {
      out.push_back(fmt::format("{} {}{}@{}", event.start,
                                event.kind == trace::EventKind::kFree ? '-' : '+', name,
                                event.address));
    }
  }
  return out;
}

Handed block(const char* name, std::int64_t begin, std::int64_t bytes) {
  return {Offset(begin), Bytes(bytes), name};
}

// The example of the header.
TEST(CallTrace, TellsWhatCallsWereHanded) {
  trace::Trace trace;
  CallTrace calls(trace);
  calls.hand_out(block("x", 0, 64), false, 1);
  calls.add_step({{10, 20, "conv", "forward", 0, {block("x", 0, 64)}, {block("y", 64, 64)}},
                  {20, 25, "relu", "forward", 0, {block("y", 64, 64)}, {block("z", 64, 64)}},
                  {25, 30, "pool", "forward", 0, {block("z", 64, 64)}, {block("p", 0, 32)}}},
                 std::vector{block("p", 0, 32)});
  EXPECT_THAT(told(trace), ElementsAre("1 +x@0", "10 +y@64", "10 conv", "20 -x@0", "20 relu",
                                       "25 +p@0", "25 pool", "30 -p@0", "30 -y@64"));
}

TEST(CallTrace, KeepsStateUntilTheEndAndForgetsBatches) {
  trace::Trace trace;
  CallTrace calls(trace);
  for (const int step : {0, 100}) {
    calls.hand_out(block("w", 0, 64), true, step + 1);
    calls.hand_out(block("batch", 64, 64), false, step + 2);
    calls.add_step({{step + 10,
                     step + 20,
                     "update",
                     "update",
                     0,
                     {block("w", 0, 64), block("batch", 64, 64)},
                     {block("w.next", 0, 64)}}},
                   {});
  }
  EXPECT_THAT(told(trace), ElementsAre("1 +w@0", "2 +batch@64", "10 update", "20 -batch@64",
                                       "102 +batch@64", "110 update", "120 -batch@64"));
}

TEST(CallTrace, EndsABlockThatIsPartlyWrittenOver) {
  trace::Trace trace;
  CallTrace calls(trace);
  calls.add_step(
      {{1, 2, "a", "", 0, {}, {block("a", 0, 128)}}, {5, 6, "b", "", 0, {}, {block("b", 64, 128)}}},
      {});
  EXPECT_THAT(told(trace), ElementsAre("1 +a@0", "1 a", "2 -a@0", "5 +b@64", "5 b", "6 -b@64"));
}

Result<plan::Plan> plan_of(const ir::Graph& graph) {
  schedule::GraphWorkloadOptions how;
  PLIMSOLL_TRY(how.kernels, kernels::cpu_kernel_facts(graph, {1}));
  PLIMSOLL_TRY(const auto mapped, schedule::make_graph_workload(graph, how));
  return plan::make_plan(graph, mapped, schedule::keep_all(mapped.workload), {});
}

trace::Trace trace_of(const plan::Plan& plan) {
  trace::Trace trace;
  auto executor = make_planned(plan, {.threads = 1, .trace = &trace});
  EXPECT_TRUE(executor) << executor.error().message;
  for (std::uint64_t step = 0; step < 2; ++step) {
    for (std::size_t v = 0; v < plan.graph.values.size(); ++v) {
      const ir::Value& value = plan.graph.values[v];
      const bool wanted =
          ir::is_source(value.kind) && (step == 0 || value.kind == ir::ValueKind::kInput);
      EXPECT_TRUE(!wanted || fill_source(**executor, ValueId(v), 1, step));
    }
    EXPECT_TRUE((*executor)->step());
  }
  return trace;
}

TEST(TraceDepartures, ARunFollowsItsPlanOnAnyNumberOfStreams) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    auto plan = plan_of(plan::random_graph(seed));
    ASSERT_TRUE(plan) << plan.error().message;
    for (const int streams : {1, 3}) {
      SCOPED_TRACE(fmt::format("seed {} streams {}", seed, streams));
      ASSERT_TRUE(plan::spread_over_streams(*plan, {.streams = streams}));
      const trace::Trace trace = trace_of(*plan);
      EXPECT_THAT(trace_departures(*plan, trace), ElementsAre());
      EXPECT_GT(trace::peak_live_bytes(trace), Bytes(0));
    }
  }
}

// The arena of what runs is 4 KiB larger and everything lies that much higher: right in itself, and
// not the plan.
TEST(TraceDepartures, KernelsThatAreHandedOtherAddressesShow) {
  const auto plan = plan_of(plan::random_graph(7));
  ASSERT_TRUE(plan) << plan.error().message;
  plan::Plan moved = *plan;
  moved.arenas.front().bytes += Bytes(4096);
  moved.proof.optimal = false;
  const auto biggest =
      std::max_element(moved.buffers.begin(), moved.buffers.end(),
                       [](const auto& a, const auto& b) { return a.offset < b.offset; });
  biggest->offset = biggest->offset + Bytes(4096);
  const trace::Trace trace = trace_of(moved);
  EXPECT_THAT(trace_departures(moved, trace), ElementsAre());
  const auto departures = trace_departures(*plan, trace);
  ASSERT_FALSE(departures.empty());
  EXPECT_THAT(departures.front(),
              ::testing::HasSubstr(fmt::format("'{}' was at offset {}, the plan has it at ",
                                               biggest->name, biggest->offset.value)));
}

}  // namespace
}  // namespace plimsoll::runtime
