#include "plimsoll/report/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/report/timeline_of_trace.h"

namespace plimsoll::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

trace::Event& hold(trace::Trace& trace, std::uint64_t address, std::int64_t bytes,
                   std::int64_t time) {
  trace::Event& event = trace.add(trace::EventKind::kAllocation);
  event.address = address;
  event.bytes = Bytes(bytes);
  event.start = event.end = time;
  return event;
}

void let_go(trace::Trace& trace, std::uint64_t address, std::int64_t time) {
  trace::Event& event = trace.add(trace::EventKind::kFree);
  event.address = address;
  event.start = event.end = time;
}

std::uint32_t one_stack(trace::Trace& trace) {
  trace.stacks.push_back(
      {{trace.strings.intern("main"), trace.strings.intern("/home/me/net/train.py"), 3}});
  return static_cast<std::uint32_t>(trace.stacks.size());
}

// 100 blocks of 2 MiB, every second freed, then blocks of 4 MiB that fit in no gap: a segment of
// 400 MiB for 200 MiB alive.
trace::Trace fragmented_snapshot() {
  trace::Trace trace;
  trace.source = "pytorch";
  constexpr std::uint64_t kBase = 0x7f0000000000;
  trace::Event& segment = trace.add(trace::EventKind::kSegmentAlloc);
  segment.bytes = 400_MiB;
  segment.address = kBase;
  for (int i = 0; i < 100; ++i)
    hold(trace, kBase + (static_cast<std::uint64_t>(i) << 21), 2 << 20, i);
  for (int i = 0; i < 100; i += 2)
    let_go(trace, kBase + (static_cast<std::uint64_t>(i) << 21), 100 + i);
  for (int i = 0; i < 25; ++i)
    hold(trace, kBase + (static_cast<std::uint64_t>(100 + 2 * i) << 21), 4 << 20, 300 + i);
  return trace;
}

TEST(Diagnosis, HeadsASnapshotWithWhatFragmentationCosts) {
  const trace::Trace trace = fragmented_snapshot();
  const Timeline timeline = timeline_of(trace, "s.pickle");
  const Diagnosis found = diagnose(timeline, trace);
  EXPECT_EQ(found.alive, 200_MiB);
  EXPECT_EQ(found.reserved, 400_MiB);
  ASSERT_EQ(found.replayed.size(), 2U);
  EXPECT_EQ(found.replayed[0].name, "plimsoll");
  EXPECT_GE(found.replayed[0].reserved, found.alive);
  EXPECT_THAT(found.headline,
              testing::StartsWith("200.0 MiB alive, 400.0 MiB reserved: 200.0 MiB "
                                  "lost to fragmentation; with plimsoll's allocator "));
  EXPECT_THAT(found.advice, testing::Contains(HasSubstr("expandable_segments:True")));
  EXPECT_THAT(found.advice, testing::Contains(HasSubstr("_record_memory_history")));
}

TEST(Diagnosis, BeginsWithAnOutOfMemoryEventAndDoesNotBlameATightAllocator) {
  trace::Trace trace;
  trace.source = "pytorch";
  trace.add(trace::EventKind::kSegmentAlloc).bytes = 64_MiB;
  hold(trace, 1 << 20, 63 << 20, 1).stack = one_stack(trace);
  trace.add(trace::EventKind::kOutOfMemory).bytes = 1_GiB;
  const Timeline timeline = timeline_of(trace, "s.pickle");
  const Diagnosis found = diagnose(timeline, trace);
  EXPECT_THAT(found.headline,
              testing::StartsWith("Out of memory with 1.00 GiB asked for; 63.00 MiB "
                                  "alive, 64.00 MiB reserved: 1.6 % above"));
  EXPECT_THAT(found.advice, Not(testing::Contains(HasSubstr("expandable_segments"))));
  EXPECT_THAT(found.advice, Not(testing::Contains(HasSubstr("_record_memory_history"))));
  EXPECT_THAT(found.advice, testing::Contains(HasSubstr("must shrink")));
}

TEST(Diagnosis, DoesWithoutTheReplayWhenThereIsNoTimeForIt) {
  const trace::Trace trace = fragmented_snapshot();
  const Diagnosis found = diagnose(timeline_of(trace, "s.pickle"), trace, {.most_seconds = 0});
  EXPECT_TRUE(found.replayed.empty());
  EXPECT_THAT(found.headline, testing::EndsWith("lost to fragmentation"));
  EXPECT_THAT(found.advice, testing::Contains(HasSubstr("plimsoll replay s.pickle")));
}

TEST(Diagnosis, DoesNotReplayWhatAPlanPlaced) {
  trace::Trace trace;
  hold(trace, 64, 1 << 20, 1);
  const Diagnosis found = diagnose(timeline_of(trace, "run.jsonl"), trace);
  EXPECT_EQ(found.headline, "1.00 MiB alive at the peak");
  EXPECT_TRUE(found.replayed.empty());
  EXPECT_TRUE(found.advice.empty());
}

// Two devices: the report is about the first, and so is its headline.
TEST(Diagnosis, IsAboutTheFirstDevice) {
  trace::Trace trace = fragmented_snapshot();
  trace::Event& other = hold(trace, 64, 1 << 30, 999);
  other.device = 1;
  const Diagnosis found = diagnose(timeline_of(trace, "s.pickle"), trace);
  EXPECT_THAT(found.headline, testing::StartsWith("Device 0: 200.0 MiB alive"));
  ASSERT_FALSE(found.replayed.empty());
  EXPECT_LT(found.replayed[0].reserved, 300_MiB);
}

}  // namespace
}  // namespace plimsoll::report
