#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "plimsoll/base/random.h"
#include "plimsoll/ir/text.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/plan/make_plan.h"
#include "plimsoll/report/columns.h"
#include "plimsoll/report/comparison.h"
#include "plimsoll/report/diagnosis.h"
#include "plimsoll/report/graph_view.h"
#include "plimsoll/report/layer_groups.h"
#include "plimsoll/report/page.h"
#include "plimsoll/report/picture.h"
#include "plimsoll/report/series.h"
#include "plimsoll/report/timeline_of_plan.h"
#include "plimsoll/report/timeline_of_trace.h"
#include "plimsoll/schedule/fit.h"
#include "plimsoll/schedule/workload/graph_encodings.h"
#include "plimsoll/schedule/workload/graph_workload.h"

namespace plimsoll::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// x and w feed h = x + w; y = relu(h) lies over h; z = x + y reads x for the last time.
//
//   step    0     1     2
//   x     ████████████████   64 bytes at 0
//   w     █████              64 bytes at 64, dead after step 0
//   h           (born at 0)  64 bytes at 128, holds h then y
//   z                 ████   64 bytes at 64, where w lay
plan::Plan small_plan() {
  plan::Plan plan;
  auto graph = ir::parse_text(
      "plimsoll graph 1 \"small\"\n"
      "%0 input \"x\" fp32[16]\n"
      "%1 input \"w\" fp32[16]\n"
      "%2 activation \"a.0/add\" fp32[16] = add(%0, %1) forward \"a.0\"\n"
      "%3 activation \"a.1/relu\" fp32[16] = relu(%2) forward \"a.1\"\n"
      "%4 activation \"b/add\" fp32[16] = add(%0, %3) forward \"b\"\n"
      "output %4\nend\n");
  EXPECT_TRUE(graph) << (graph ? "" : graph.error().message);
  plan.graph = *graph;
  const auto buffer = [&plan](const char* name, std::size_t value, plan::Use use,
                              std::int64_t offset, int first, int end) {
    plan.buffers.push_back(
        {name, ValueId(value), 64_bytes, use, 0, Offset(offset), {Step(first), Step(end)}});
  };
  buffer("x", 0, plan::Use::kInput, 0, 0, 3);
  buffer("w", 1, plan::Use::kInput, 64, 0, 1);
  buffer("a.0/add", 2, plan::Use::kActivation, 128, 0, 3);
  buffer("b/add", 4, plan::Use::kOutput, 64, 2, 3);
  const auto slot = [](std::size_t index) { return plan::Slot{BufferId(index), 0_bytes}; };
  const auto step = [&plan](std::size_t node, std::vector<plan::Slot> in, plan::Slot out,
                            double seconds) {
    plan::PlanStep& made = plan.steps.emplace_back();
    made.node = NodeId(node);
    made.inputs = std::move(in);
    made.outputs = {out};
    made.seconds = seconds;
  };
  step(0, {slot(0), slot(1)}, slot(2), 0.25);
  step(1, {slot(2)}, slot(2), 0.5);
  step(2, {slot(0), slot(2)}, slot(3), 0.25);
  plan.arenas = {{"device", 192_bytes}};
  plan.sources = {{ValueId(0), slot(0)}, {ValueId(1), slot(1)}};
  plan.results = {{ValueId(4), slot(3)}};
  plan.proof = {192_bytes, 192_bytes, true};
  return plan;
}

trace::Event& allocate(trace::Trace& trace, std::string_view name, std::uint64_t address,
                       std::int64_t bytes, std::int64_t time) {
  trace::Event& event = trace.add(trace::EventKind::kAllocation, name);
  event.address = address;
  event.bytes = Bytes(bytes);
  event.start = event.end = time;
  return event;
}

void release(trace::Trace& trace, std::uint64_t address, std::int64_t time) {
  trace::Event& event = trace.add(trace::EventKind::kFree);
  event.address = address;
  event.start = event.end = time;
}

TEST(TimelineOfPlan, HasAnAllocationForEveryBufferAndATimeStepForEveryStep) {
  const Timeline timeline = timeline_of(small_plan(), "small");
  ASSERT_EQ(timeline.allocations.size(), 4U);
  EXPECT_EQ(timeline.time_steps(), 3);
  EXPECT_EQ(timeline.seconds, (std::vector<double>{0, 0.25, 0.75, 1}));
  EXPECT_EQ(peak_of(timeline).bytes, 192_bytes);
  EXPECT_EQ(peak_of(timeline).time_step, Step(0));
  EXPECT_EQ(total_of(timeline), 192_bytes);
}

TEST(TimelineOfPlan, KnowsProducerAndLastReader) {
  const Timeline timeline = timeline_of(small_plan(), "small");
  const auto chain = std::find_if(timeline.allocations.begin(), timeline.allocations.end(),
                                  [&](const Allocation& allocation) {
                                    return timeline.texts.text(allocation.name) == "a.0/add";
                                  });
  ASSERT_NE(chain, timeline.allocations.end());
  EXPECT_EQ(chain->producer, 0);
  EXPECT_EQ(chain->last_reader, 2);
  EXPECT_EQ(timeline.texts.text(chain->layer), "a.0");
  EXPECT_EQ(timeline.texts.text(chain->type), "fp32[16]");
  EXPECT_EQ(timeline.operators[2].touched, 192_bytes);
}

TEST(WhyAlive, PricesWhatTheStepDoesNotTouch) {
  const plan::Plan plan = small_plan();
  const Timeline timeline = timeline_of(plan, "small");
  const std::vector<AliveRow> rows =
      alive_at(timeline, Step(1), plan, *schedule::shipped_profile("cpu"));
  ASSERT_EQ(rows.size(), 2U);  // x and the chain; the chain is in use at step 1
  for (const AliveRow& row : rows) {
    const std::string& name = timeline.texts.text(timeline.allocations[row.allocation].name);
    if (name == "x") {
      EXPECT_THAT(row.why, HasSubstr("read last by step 2 (b/add)"));
      ASSERT_EQ(row.prices.size(), 1U);
      EXPECT_EQ(row.prices[0].remedy, "swap");
      EXPECT_EQ(row.prices[0].saves, 64_bytes);
    } else {
      EXPECT_TRUE(row.prices.empty());
    }
  }
}

// What `explain` prices is what the planner may choose: the same forms, of the same size.
TEST(WhyAlive, PricesTheFormsThatThePlannerOffers) {
  ops::Builder b("two");
  const ops::Var x = b.input("x", {ir::DType::kF32, {64, 64}});
  const ops::Var r = relu(matmul(x, x));
  const ops::Var t = tanh(matmul(x, r));
  const ops::Var u = softmax(softmax(matmul(t, x)));
  const ir::Graph graph = *b.finish({add(add(r, t), u)});
  const schedule::DeviceProfile& profile = *schedule::shipped_profile("cpu");
  schedule::GraphWorkloadOptions how;
  how.codecs = profile.codecs;
  how.lossy = schedule::lossy_forms();
  const auto mapped = schedule::make_graph_workload(graph, how);
  ASSERT_TRUE(mapped) << mapped.error().message;
  const auto plan = plan::make_plan(graph, *mapped, schedule::keep_all(mapped->workload), {});
  ASSERT_TRUE(plan) << plan.error().message;
  const Timeline timeline = timeline_of(*plan, "two");
  std::set<std::string> priced;
  for (std::int64_t time_step = 0; time_step < timeline.time_steps(); ++time_step) {
    for (const AliveRow& row : alive_at(timeline, Step(time_step), *plan, profile)) {
      const Allocation& allocation = timeline.allocations[row.allocation];
      for (const Price& price : row.prices) {
        if (price.remedy != "encode") continue;
        priced.insert(price.detail);
        const std::string form = price.detail.substr(0, price.detail.find(' '));
        const bool offered = std::any_of(
            mapped->workload.values.begin(), mapped->workload.values.end(),
            [&](const schedule::Value& value) {
              return std::any_of(value.encodings.begin(), value.encodings.end(),
                                 [&](const schedule::Encoding& offer) {
                                   return offer.name == form && offer.lossless == price.lossless &&
                                          value.bytes == allocation.bytes &&
                                          offer.bytes == allocation.bytes - price.saves;
                                 });
            });
        EXPECT_TRUE(offered) << price.detail;
      }
    }
  }
  EXPECT_TRUE(priced.contains("fp16 or bf16 while it waits; lossy"));
  EXPECT_TRUE(priced.contains("int8 while it waits; lossy"));
  EXPECT_TRUE(priced.contains("sparse while it waits; lossless"));
}

TEST(TimelineOfPlan, SaysWhichEncodingsAreLossy) {
  plan::Plan plan = small_plan();
  plan::PlanStep step;
  step.kind = plan::StepKind::kEncode;
  step.value = ValueId(0u);
  step.codec = "int8";
  EXPECT_THAT(step_name(plan, step), HasSubstr("(int8, lossy)"));
  step.codec = "sparse";
  EXPECT_THAT(step_name(plan, step), HasSubstr("(sparse)"));
}

TEST(TimelineOfPlan, SaysSwapWherePlanFilesSaySendOutAndBringIn) {
  plan::Plan plan = small_plan();
  plan::PlanStep step;
  step.value = ValueId(0u);
  const std::string value = plan.graph.value(step.value).name;
  step.kind = plan::StepKind::kCopyOut;
  EXPECT_EQ(step_name(plan, step), "swap out " + value);
  step.kind = plan::StepKind::kCopyIn;
  EXPECT_EQ(step_name(plan, step), "swap in " + value);
}

TEST(TimelineOfTrace, PairsAllocationsWithFreesAndCountsStrays) {
  trace::Trace trace;
  allocate(trace, "a.weight", 0x7f0000000000, 100, 1000);
  allocate(trace, "b.out", 0x7f1000000000, 50, 2000);
  release(trace, 0x7f1000000000, 3000);
  release(trace, 0x7f2000000000, 3500);
  const Timeline timeline = timeline_of(trace, "t");
  ASSERT_EQ(timeline.allocations.size(), 2U);
  EXPECT_EQ(timeline.time_steps(), 4);  // every event is one, the stray free too
  EXPECT_EQ(timeline.events, 4);
  EXPECT_EQ(peak_of(timeline).bytes, 150_bytes);
  EXPECT_EQ(peak_of(timeline).time_step, Step(1));
  EXPECT_EQ(timeline.allocations[0].life, (Interval<Step>{Step(0), Step(4)}));
  EXPECT_EQ(timeline.allocations[1].life, (Interval<Step>{Step(1), Step(2)}));
  EXPECT_EQ(timeline.allocations[0].place, Offset(0));
  EXPECT_EQ(timeline.allocations[1].place, Offset(612));  // behind a, and a seam
  EXPECT_EQ(timeline.texts.text(timeline.allocations[0].layer), "a");
  ASSERT_EQ(timeline.notes.size(), 1U);
  EXPECT_THAT(timeline.notes[0], HasSubstr("1 frees"));
}

TEST(TimelineOfTrace, TakesEmptyAndOneEventTraces) {
  trace::Trace empty;
  EXPECT_EQ(peak_of(timeline_of(empty, "e")).bytes, 0_bytes);
  trace::Trace one;
  allocate(one, "only", 64, 10, 5);
  const Timeline timeline = timeline_of(one, "o");
  EXPECT_EQ(timeline.time_steps(), 1);
  EXPECT_EQ(peak_of(timeline).bytes, 10_bytes);
  for (const trace::Trace* trace : {&empty, &one}) {
    Report report{"r", {}, {}, {}};
    report.chapters.push_back(chapter_of(timeline_of(*trace, "t")));
    EXPECT_THAT(to_html(report), HasSubstr("</html>"));
    EXPECT_THAT(to_svg(timeline_of(*trace, "t")), HasSubstr("</svg>"));
  }
}

TEST(TimelineOfTrace, SumsTheSmallestAboveTheLimitAndSaysSo) {
  trace::Trace trace;
  for (int i = 0; i < 100; ++i)
    allocate(trace, "x", static_cast<std::uint64_t>(1 + i) << 20, 10 + i, i);
  const Timeline all = timeline_of(trace, "all");
  const Timeline few =
      timeline_of(trace, "few", {.capacity = {}, .in_use = {}, .most_allocations = 20});
  const auto is_sum = [&few](const Allocation& allocation) {
    return few.texts.text(allocation.name) == "small allocations, summed";
  };
  // one a time step: there are few time steps
  EXPECT_EQ(std::count_if(few.allocations.begin(), few.allocations.end(), is_sum), 80 + 20);
  EXPECT_EQ(few.allocations.size(), 120U);
  EXPECT_EQ(peak_of(few).bytes, peak_of(all).bytes);
  ASSERT_EQ(few.notes.size(), 1U);
  EXPECT_THAT(few.notes[0], HasSubstr("80 allocations of at most 89 B are drawn as sums"));
}

TEST(TimelineOfTrace, HoldsAgainstNumbersNoMachineHas) {
  trace::Trace trace;
  for (int i = 0; i < 1000; ++i)
    allocate(trace, "x", ~std::uint64_t{0} - static_cast<std::uint64_t>(i),
             std::numeric_limits<std::int64_t>::max(),
             i % 2 == 0 ? std::numeric_limits<std::int64_t>::min() / 2 : 7);
  const Timeline timeline = timeline_of(trace, "hostile");
  for (const Bytes bytes : bytes_by_time_step(timeline)) EXPECT_GE(bytes, 0_bytes);
}

// The obvious way: what is alive at every time step, allocation by allocation.
TEST(Series, KeepsTheFullestMomentOfEveryBucket) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    Timeline timeline;
    timeline.memories = {"device"};
    const std::int64_t time_steps = 1 + static_cast<std::int64_t>(random.below(300));
    for (std::int64_t t = 0; t <= time_steps; ++t)
      timeline.seconds.push_back(static_cast<double>(t));
    for (int b = 0; b < 60; ++b) {
      Allocation allocation;
      const auto begin =
          static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(time_steps)));
      const std::int64_t end =
          begin + 1 +
          static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(time_steps - begin)));
      allocation.life = {Step(begin), Step(end)};
      allocation.bytes = Bytes(1 + static_cast<std::int64_t>(random.below(1000)));
      allocation.kind = static_cast<Kind>(random.below(kKindCount));
      timeline.allocations.push_back(allocation);
    }
    sort_allocations(timeline);
    const std::vector<Bytes> alive = bytes_by_time_step(timeline);
    const Series series = make_series(
        timeline, 0, kKindCount,
        [](const Allocation& b) { return static_cast<std::size_t>(b.kind); }, 37);
    ASSERT_LE(series.buckets, 37);
    for (std::int64_t bucket = 0; bucket < series.buckets; ++bucket) {
      const auto first = alive.begin() + bucket * series.time_steps_per_bucket;
      const auto end =
          alive.begin() + std::min(time_steps, (bucket + 1) * series.time_steps_per_bucket);
      double sum = 0;
      for (const auto& group : series.bytes) sum += group[static_cast<std::size_t>(bucket)];
      EXPECT_EQ(sum, static_cast<double>(std::max_element(first, end)->value));
    }
  }
}

TEST(LayerGroups, OpenTheLargestWhileThereIsRoom) {
  trace::Trace trace;
  for (int block = 0; block < 8; ++block) {
    allocate(trace, "net.blocks." + std::to_string(block) + ".weight",
             static_cast<std::uint64_t>(block + 1) << 30, 1000, block);
  }
  allocate(trace, "head.weight", std::uint64_t{99} << 30, 10, 99);
  const Timeline timeline = timeline_of(trace, "t");
  const LayerGroups groups = group_layers(timeline, 11);
  EXPECT_EQ(groups.names.size(), 9U);
  EXPECT_THAT(groups.names, testing::Contains("net.blocks.7"));
  const std::vector<LayerRow> tree = layer_tree(timeline);
  ASSERT_EQ(tree.size(), 11U);
  EXPECT_EQ(tree[1].path, "net");
  EXPECT_EQ(tree[1].total, 8000_bytes);
  EXPECT_EQ(tree[1].at_peak, 8000_bytes);
  EXPECT_EQ(tree[10].path, "net.blocks.7");
  EXPECT_EQ(group_layers(timeline, 4).names.size(), 2U);  // head, net.blocks
}

TEST(Comparison, PartsExplainTheDifferenceToTheByte) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const auto make = [&random] {
      trace::Trace trace;
      for (int i = 0; i < 40; ++i) {
        allocate(trace, "layer" + std::to_string(random.below(12)) + ".t",
                 static_cast<std::uint64_t>(i + 1) << 24,
                 static_cast<std::int64_t>(random.below(5000)), i);
        if (random.below(3) == 0)
          release(trace, (1 + random.below(static_cast<std::uint64_t>(i) + 1)) << 24, i);
      }
      return timeline_of(trace, "t");
    };
    Timeline before = make();
    const Timeline after = make();
    before.arena = peak_of(before).bytes + 17_bytes;
    const Comparison comparison = compare(before, after);
    const auto sum = [](const auto& rows) {
      Bytes total;
      for (const auto& row : rows) total += row.growth();
      return total;
    };
    Bytes parts;
    for (const Part& part : comparison.parts) parts += part.bytes;
    EXPECT_EQ(parts, comparison.growth());
    EXPECT_EQ(sum(comparison.by_kind), comparison.growth());
    EXPECT_EQ(sum(comparison.by_layer) - 17_bytes, comparison.growth());
    EXPECT_EQ(sum(comparison.by_tensor) - 17_bytes, comparison.growth());
  }
}

TEST(TimelineOfTrace, KnowsStreamsAndWhatTheAllocatorHeld) {
  trace::Trace trace;
  trace::Event& segment = trace.add(trace::EventKind::kSegmentAlloc);
  segment.bytes = 4096_bytes;
  allocate(trace, "a", 64, 100, 1).stream = trace::StreamId{0};
  allocate(trace, "b", 4096, 50, 2).stream = trace::StreamId{0x7f00deadbeef};
  const Timeline timeline = timeline_of(trace, "t");
  EXPECT_EQ(timeline.streams, (std::vector<std::string>{"0", "0x7f00deadbeef"}));
  EXPECT_EQ(timeline.allocations[1].stream, 1);
  EXPECT_EQ(timeline.reserved, (std::vector<Reserved>{{0, Step(0), 4096_bytes}}));
  EXPECT_EQ(timeline.allocations[0].life.begin, Step(1));  // the segment is event 0
}

// A stack from the innermost frame out; files of the project share /home/me/net/.
std::uint32_t add_stack(trace::Trace& trace, std::string_view file, int line,
                        std::string_view function) {
  const auto frame = [&trace](std::string_view name, std::string_view where, int at) {
    return trace::Frame{trace.strings.intern(name), trace.strings.intern(where), at};
  };
  trace.stacks.push_back(
      {frame("c10::malloc", "??", 0),
       frame("_call_impl", "/usr/lib/python3/dist-packages/torch/nn/modules/module.py", 1518),
       frame(function, file, line), frame("main", "/home/me/net/train.py", 7)});
  return static_cast<std::uint32_t>(trace.stacks.size());
}

TEST(TimelineOfTrace, NamesLayersAfterFilesAndLinesNotAfterTheirDots) {
  trace::Trace trace;
  trace.source = "pytorch";
  const std::vector<std::uint32_t> stacks = {
      add_stack(trace, "/home/me/net/models/gpt2.small.py", 12, "forward"),
      add_stack(trace, "/home/me/net/models/gpt2.small.py", 9, "forward"),
      add_stack(trace, "/home/me/net/train.py", 40, "step"),
      add_stack(trace, "/usr/lib/python3/dist-packages/timm/layers/mlp.py", 44, "forward")};
  for (std::size_t i = 0; i < stacks.size(); ++i)
    allocate(trace, "", (i + 1) << 20, 1000, static_cast<std::int64_t>(i)).stack = stacks[i];
  allocate(trace, "block.0.weight", 64 << 20, 10, 9);
  const Timeline timeline = timeline_of(trace, "t");
  EXPECT_TRUE(timeline.has_stacks);
  std::vector<std::string> rows;
  for (const LayerRow& row : layer_tree(timeline))
    rows.push_back(std::string(static_cast<std::size_t>(row.depth), ' ') + row.name);
  EXPECT_THAT(rows, testing::ElementsAre("block", " 0", "models/gpt2.small.py", " :9 forward",
                                         " :12 forward", "timm/layers/mlp.py", " :44 forward",
                                         "train.py", " :40 step"));
  EXPECT_THAT(group_layers(timeline).names, testing::Contains("models/gpt2.small.py:12 forward"));
  EXPECT_THAT(timeline.texts.text(timeline.allocations[0].origin),
              HasSubstr("forward (/home/me/net/models/gpt2.small.py:12)"));
}

// Imported models call their tensors as they like.
TEST(TimelineOfTrace, PutsWhatAnOperatorMakesIntoItsLayer) {
  trace::Trace trace;
  allocate(trace, "val_3.m", 64, 10, 0).category = trace::Category::kOptimizer;
  allocate(trace, "val_35", 128, 20, 1).category = trace::Category::kActivation;
  trace.add(trace::EventKind::kOperator, "conv1/conv").start = 2;
  const Timeline timeline = timeline_of(trace, "t");
  ASSERT_EQ(timeline.allocations.size(), 2U);
  for (const Allocation& allocation : timeline.allocations) {
    const bool made = timeline.texts.text(allocation.name) == "val_35";
    EXPECT_EQ(allocation.producer, made ? 0 : -1) << "state is there before the first operator";
    EXPECT_EQ(timeline.texts.text(allocation.layer), made ? "conv1" : "");
  }
}

TEST(TimelineOfTrace, SaysThatAnEncodingInARunWasLossy) {
  trace::Trace trace;
  for (const char* name : {"encode a (int8, lossy)", "encode a (sparse)"})
    trace.add(trace::EventKind::kOperator, name).phase = trace.strings.intern("encode");
  const Timeline timeline = timeline_of(trace, "t");
  EXPECT_EQ(timeline.texts.text(timeline.operators[0].what), "encode_lossy");
  EXPECT_EQ(timeline.texts.text(timeline.operators[1].what), "encode");
}

TEST(Diagnosis, SaysOfAPlanWhatWasDoneAndWhetherItIsLossy) {
  plan::Plan plan = small_plan();
  EXPECT_EQ(diagnose(timeline_of(plan, "small")).headline,
            "192 B needed; at the peak: inputs 67 %, activations 33 %");
  plan.budget = 200_bytes;
  EXPECT_EQ(diagnose(timeline_of(plan, "small")).headline,
            "192 B in a budget of 200 B: nothing had to be recomputed, swapped or encoded");
  Timeline timeline = timeline_of(plan, "small");
  timeline.operators[1].what = timeline.texts.intern("encode_lossy");
  EXPECT_EQ(diagnose(timeline).headline, "192 B in a budget of 200 B: 1 encoded (lossy)");
  timeline.encoded_weights = 3;
  EXPECT_EQ(diagnose(timeline).headline,
            "192 B in a budget of 200 B: 1 encoded (lossy), 3 weights encoded");
}

TEST(TimelineOfTrace, FilesTheManyStreamsOfAHostileTraceUnderOthers) {
  trace::Trace trace;
  for (int i = 0; i < 1000; ++i)
    allocate(trace, "x", static_cast<std::uint64_t>(1 + i) << 20, 10, i).stream =
        trace::StreamId{static_cast<std::uint64_t>(i)};
  const Timeline timeline = timeline_of(trace, "t");
  ASSERT_EQ(timeline.streams.size(), 256U);
  EXPECT_EQ(timeline.streams.back(), "others");
  EXPECT_EQ(timeline.allocations[999].stream, 255);
}

// A device of 10,000 bytes: the allocator holds 4,096, the driver had 1,000 left when it refused.
TEST(TimelineOfTrace, GivesWhatLiesOutsideTheAllocatorAnAllocationOfItsOwn) {
  trace::Trace trace;
  trace.add(trace::EventKind::kSegmentAlloc).bytes = 4096_bytes;
  allocate(trace, "a", 64, 100, 1);
  trace::Event& refused = trace.add(trace::EventKind::kOutOfMemory);
  refused.bytes = 1_GiB;
  refused.address = 1000;
  const auto outside = [&trace](const TraceFacts& facts) {
    return bytes_by_kind_at(timeline_of(trace, "t", facts),
                            Step(0))[static_cast<std::size_t>(Kind::kOutside)];
  };
  EXPECT_EQ(outside({}), 0_bytes);
  EXPECT_EQ(outside({.capacity = 10000_bytes, .in_use = {}}), 4904_bytes);
  EXPECT_EQ(outside({.capacity = {}, .in_use = 5000_bytes}), 904_bytes);
  // nonsense: nothing is left over
  EXPECT_EQ(outside({.capacity = 10_bytes, .in_use = {}}), 0_bytes);
}

TEST(Curve, ReadsASweepInOrderOfItsPeaks) {
  const auto curve = parse_curve(R"({"schema": 1, "keep_all_seconds": 2, "points": [
      {"peak_bytes": 300, "predicted_seconds": 2, "overhead": -1e-9},
      {"peak_bytes": 200, "predicted_seconds": 2.5, "overhead": 0.25, "lower_bound_overhead": 0.1,
       "recomputed": 7}]})",
                                 "sweep");
  ASSERT_TRUE(curve) << curve.error().message;
  ASSERT_EQ(curve->points.size(), 2U);
  EXPECT_EQ(curve->points[0].peak, 200_bytes);
  EXPECT_EQ(curve->points[0].recomputed, 7);
  EXPECT_EQ(curve->points[1].overhead, 0);
  const std::string svg = to_svg(*curve);
  EXPECT_THAT(svg, HasSubstr("200 B (67 % of it) at 25.00 % more time"));
  EXPECT_TRUE(to_png(svg, 1));
  Report report{"sweep", {}, {}, *curve};
  EXPECT_EQ(nlohmann::json::parse(to_json(report))["curve"]["points"].size(), 2U);
}

TEST(Curve, RefusesWhatNoSweepSays) {
  for (const char* text :
       {"", "[]", "{\"points\": 3}", "{\"points\": []}", "{\"points\": [1]}", "{\"points\": [{}]}",
        "{\"points\": [{\"peak_bytes\": -7, \"predicted_seconds\": 1, \"overhead\": 0}]}",
        "{\"points\": [{\"peak_bytes\": 1e300, \"predicted_seconds\": 1, \"overhead\": 0}]}",
        "{\"points\": [{\"peak_bytes\": 1, \"predicted_seconds\": \"x\", \"overhead\": 0}]}"}) {
    const auto curve = parse_curve(text, "t");
    ASSERT_FALSE(curve) << text;
    EXPECT_EQ(curve.error().code, ErrorCode::kBadInput);
  }
}

TEST(Columns, AreAsNarrowAsTheirNumbersAllow) {
  const auto stored = [](std::vector<std::int64_t> numbers, bool delta = false) {
    return column(std::span<const std::int64_t>(numbers), delta);
  };
  EXPECT_EQ(stored({7, 7, 7}).dump(), R"({"count":3,"base":7,"unit":1})");
  EXPECT_EQ(stored({512, 2048, 512 * 200})["type"], "u8");
  EXPECT_EQ(stored({512, 2048, 512 * 200})["unit"], 1536 / 3);
  EXPECT_EQ(stored({-1, 300})["type"], "u8");  // -1 and 301 times one
  EXPECT_EQ(stored({0, 1, 300})["type"], "u16");
  EXPECT_EQ(stored({0, 1, 70000})["type"], "u32");
  EXPECT_EQ(stored({0, 1, std::int64_t{1} << 33})["type"], "f64");
  EXPECT_EQ(stored({0, std::int64_t{1} << 40})["wide"], true);
  EXPECT_EQ(stored({5, 6, 7, 8}, true)["type"], "u8");
  EXPECT_EQ(stored({}).dump(), R"({"count":0,"base":0,"unit":1})");
}

TEST(Columns, Base64PadsAsTheStandardSays) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
}

TEST(Page, HoldsNoRequestAndNoMarkupFromNames) {
  plan::Plan plan = small_plan();
  const std::string nasty = "</script><img src=x onerror=alert(1)>\xff\xfe";
  plan.buffers[0].name = nasty;
  Report report{nasty, {}, {}, {}};
  report.chapters.push_back(
      chapter_of(timeline_of(plan, nasty), plan, *schedule::shipped_profile("cpu")));
  const std::string page = to_html(report);
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("http://")));
  EXPECT_THAT(page, Not(HasSubstr("https://")));
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  const std::string svg = to_svg(report.chapters[0].timeline);
  EXPECT_THAT(svg, Not(HasSubstr("<img")));
  const auto png = to_png(svg, 1);
  ASSERT_TRUE(png) << png.error().message;
  EXPECT_EQ(png->substr(1, 3), "PNG");
}

TEST(GraphView, FlowsForwardAndGivesAllocationsToTheirOperators) {
  const plan::Plan plan = small_plan();
  Timeline timeline = timeline_of(plan, "small");
  const GraphView view = graph_view_of(plan, timeline);
  ASSERT_EQ(view.nodes.size(), 5U);  // x and w, then three operators
  EXPECT_EQ(timeline.texts.text(view.nodes[0].op), "input x");
  EXPECT_EQ(timeline.texts.text(view.nodes[4].layer), "b");
  std::vector<std::pair<int, int>> edges;
  for (const GraphEdge& edge : view.edges) edges.emplace_back(edge.from, edge.to);
  EXPECT_THAT(edges, testing::ElementsAre(std::pair(0, 2), std::pair(1, 2), std::pair(2, 3),
                                          std::pair(0, 4), std::pair(3, 4)));
  EXPECT_EQ(view.edges[0].bytes, 64_bytes);
  ASSERT_EQ(view.node_of_allocation.size(), timeline.allocations.size());
  for (std::size_t b = 0; b < timeline.allocations.size(); ++b) {
    const std::int32_t node = view.node_of_allocation[b];
    ASSERT_GE(node, 0) << b;
    EXPECT_EQ(view.nodes[static_cast<std::size_t>(node)].layer, timeline.allocations[b].layer);
  }
}

TEST(GraphView, ShowsWeightsWhoseLayerRunsNothing) {
  plan::Plan plan;
  auto graph = ir::parse_text(
      "plimsoll graph 1 \"lone\"\n"
      "%0 input \"x\" fp32[16]\n"
      "%1 weight \"net.table.weight\" fp32[16]\n"
      "%2 weight \"net.add.bias\" fp32[16]\n"
      "%3 activation \"a\" fp32[16] = add(%0, %1) forward \"net\"\n"
      "%4 activation \"b\" fp32[16] = add(%3, %2) forward \"net.add\"\n"
      "output %4\nend\n");
  ASSERT_TRUE(graph) << graph.error().message;
  plan.graph = *graph;
  Timeline timeline;
  const GraphView view = graph_view_of(plan, timeline);
  ASSERT_EQ(view.nodes.size(), 4U);  // x, the table, two operators; the bias is its operator's
  EXPECT_EQ(timeline.texts.text(view.nodes[1].op), "weight");
  EXPECT_EQ(timeline.texts.text(view.nodes[1].layer), "net.table");
  std::vector<std::pair<int, int>> edges;
  for (const GraphEdge& edge : view.edges) edges.emplace_back(edge.from, edge.to);
  EXPECT_THAT(edges, testing::ElementsAre(std::pair(0, 2), std::pair(1, 2), std::pair(2, 3)));
}

TEST(ReportData, IsOneJsonValueWithTheNumbersOfThePlan) {
  const plan::Plan plan = small_plan();
  Report report{"small", {}, {}, {}};
  report.chapters.push_back(
      chapter_of(timeline_of(plan, "small"), plan, *schedule::shipped_profile("cpu")));
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["schema"], kReportSchema);
  const auto& timeline = json["timelines"][0];
  EXPECT_EQ(timeline["peak"]["bytes"], 192);
  EXPECT_EQ(timeline["arena_bytes"], 192);
  EXPECT_EQ(timeline["allocations"]["count"], 4);
  EXPECT_EQ(timeline["peak_set_count"], 3);
  EXPECT_FALSE(timeline.contains("series"));
  EXPECT_EQ(timeline["graph"]["nodes"]["count"], 5);
  EXPECT_THAT(timeline["diagnosis"]["headline"], HasSubstr("192 B needed"));
}

TEST(WhyAlive, SaysLossyWhereBitsAreLostAndWritesTimesWithoutExponents) {
  EXPECT_EQ(label_of({"encode", 8_bytes, 0, "", false}), "encode (lossy)");
  EXPECT_EQ(label_of({"encode", 8_bytes, 0, "", true}), "encode");
  plan::Plan plan = small_plan();
  for (plan::PlanStep& step : plan.steps) step.seconds = 4780;
  const Timeline timeline = timeline_of(plan, "small");
  for (const AliveRow& row : alive_at(timeline, Step(1), plan, *schedule::shipped_profile("cpu")))
    for (const Price& price : row.prices) EXPECT_THAT(price.detail, Not(HasSubstr("e+")));
}

}  // namespace
}  // namespace plimsoll::report
