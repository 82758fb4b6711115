#include "plimsoll/trace/snapshot.h"
#include "plimsoll/base/testing/test_paths.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "plimsoll/base/file.h"
#include "plimsoll/base/random.h"
#include "plimsoll/trace/gzip.h"
#include "plimsoll/trace/trace_file.h"

namespace plimsoll::trace {
namespace {

const std::filesystem::path kFolder = test_source_dir() / "src/plimsoll/trace/testdata";

std::string alexnet() {
  const std::string packed = read_file(kFolder / "alexnet.pickle.gz").value();
  return inflate(packed, 1_MiB).value();
}

TEST(Snapshot, ReadsEveryEventSegmentAndAnnotation) {
  const auto snapshot = parse_snapshot(alexnet());
  ASSERT_TRUE(snapshot) << snapshot.error().message;
  EXPECT_EQ(snapshot->events.size(), 874u);
  EXPECT_EQ(snapshot->segments.size(), 23u);
  EXPECT_EQ(snapshot->annotations.size(), 12u);
  EXPECT_EQ(snapshot->events[0].kind, EventKind::kSegmentAlloc);
  EXPECT_EQ(snapshot->events[0].bytes, Bytes(77594624));
  EXPECT_EQ(snapshot->events[0].address, 140101061443584u);
}

TEST(Snapshot, FindsWhatWasThereBeforeTheRecording) {
  const Trace trace = to_trace(parse_snapshot(alexnet()).value());
  EXPECT_EQ(trace.initial.size(), 5u);
  EXPECT_EQ(trace.events.size(), 880u);
}

TEST(Snapshot, WritesWhatItReads) {
  const Trace trace = to_trace(parse_snapshot(alexnet()).value());
  const auto back = parse_snapshot(format_snapshot(trace));
  ASSERT_TRUE(back) << back.error().message;
  const Trace again = to_trace(*back);
  ASSERT_EQ(again.events.size(), trace.events.size());
  EXPECT_EQ(again.initial.size(), trace.initial.size());
  EXPECT_EQ(peak_live_bytes(again), peak_live_bytes(trace));
  EXPECT_EQ(again.stacks.size(), trace.stacks.size());
  for (std::size_t i = 0; i < trace.events.size(); ++i)
    EXPECT_EQ(again.events[i].stack, trace.events[i].stack) << i;
}

TEST(Snapshot, AStackIsWrittenOnce) {
  Trace trace;
  trace.stacks.push_back(
      std::vector<Frame>(1000, Frame{trace.strings.intern("f"), trace.strings.intern("a.py"), 7}));
  Event event;
  event.kind = EventKind::kAllocation;
  event.stack = 1;
  trace.events.assign(1000, event);
  const std::string once = format_snapshot(trace);
  EXPECT_LT(once.size(), 300'000u) << "a million frames";
  const auto back = parse_snapshot(once);
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->stacks.size(), 1u);
  EXPECT_EQ(back->events.back().stack, 1u);
}

// Pickles opcode by opcode, with a list that is named again by its place in the memo.
std::string word(const std::string& text) {
  return std::string("X") + static_cast<char>(text.size()) + std::string(3, '\0') + text;
}
const std::string kAgain("h\0", 2);

std::string shared_blocks(int segments) {
  std::string list = "](";
  for (int i = 0; i < 100; ++i)
    list += "}(" + word("state") + word("inactive") + word("size") + "K\x01u";
  list += "e\x94";
  std::string out = "\x80\x04}(" + word("segments") + "](";
  for (int i = 0; i < segments; ++i)
    out += "}(" + word("total_size") + "K\x64" + word("blocks") + (i == 0 ? list : kAgain) + "u";
  return out + "eu.";
}

TEST(Snapshot, ABlockStandsInOneSegment) {
  const auto one = parse_snapshot(shared_blocks(1));
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->segments[0].blocks.size(), 100u);
  const auto two = parse_snapshot(shared_blocks(2));
  ASSERT_FALSE(two);
  EXPECT_NE(two.error().message.find("several segments"), std::string::npos) << two.error().message;
}

std::string shared_events(int devices) {
  const std::string list = "](}(" + word("action") + word("alloc") + word("size") + "K\x01ue\x94";
  std::string out = "\x80\x04}(" + word("device_traces") + "](";
  for (int i = 0; i < devices; ++i) out += i == 0 ? list : kAgain;
  return out + "eu.";
}

TEST(Snapshot, AListOfEventsStandsUnderOneDevice) {
  EXPECT_TRUE(parse_snapshot(shared_events(1)));
  const auto two = parse_snapshot(shared_events(2));
  ASSERT_FALSE(two);
  EXPECT_NE(two.error().message.find("several devices"), std::string::npos) << two.error().message;
}

TEST(Snapshot, RefusesWhatWouldRunCode) {
  const auto expect_error = [](std::string_view bytes, const char* part) {
    const auto got = parse_snapshot(bytes);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, ErrorCode::kBadInput);
    EXPECT_NE(got.error().message.find(part), std::string::npos) << got.error().message;
  };
  expect_error(
      "\x80\x04"
      "cos\nsystem\n.",
      "call a function");
  expect_error(
      "\x80\x04"
      "}R.",
      "call a function");
  expect_error(
      "\x80\x04"
      "V",
      "do not use");
  expect_error(
      "\x80\x09"
      ".",
      "protocol");
  expect_error(
      "\x80\x04"
      "K",
      "cut off in opcode 0x4b before byte 3");
  expect_error(
      "\x80\x04"
      "h\x05.",
      "never set");
  expect_error(
      "\x80\x04"
      "X\xff\xff\xff\x7f.",
      "1 MiB");
  expect_error(
      "\x80\x04"
      "u.",
      "no mark");
  expect_error(
      "\x80\x04"
      "K\x01.",
      "not a dict");
  expect_error("", "cut off");
}

TEST(Snapshot, SurvivesDamage) {
  constexpr std::uint64_t kSeed = 5;
  SCOPED_TRACE(kSeed);
  Random random(kSeed);
  const std::string good = alexnet();
  for (int turn = 0; turn < 300; ++turn) {
    std::string bad = good.substr(0, 4000 + static_cast<std::size_t>(random.below(20000)));
    for (int flips = 0; flips < 4; ++flips) {
      bad[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(bad.size())))] =
          static_cast<char>(random.below(256));
    }
    const auto got = parse_snapshot(bad);
    if (got) to_trace(*got);
  }
}

TEST(Snapshot, DepthCostsNothing) {
  EXPECT_FALSE(parse_snapshot("\x80\x04" + std::string(1 << 20, '(')));
  EXPECT_FALSE(parse_snapshot("\x80\x04" + std::string(1 << 20, ']')));
}

}  // namespace
}  // namespace plimsoll::trace
