#include "plimsoll/trace/trace_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/trace/gzip.h"

namespace plimsoll::trace {
namespace {

Trace small_trace() {
  Trace trace;
  trace.source = "plimsoll";
  trace.stacks.push_back({{trace.strings.intern("forward"), trace.strings.intern("net.py"), 17}});
  InitialSegment& before = trace.initial.emplace_back();
  before.address = 4096;
  before.size = 2_MiB;
  before.blocks = {{4096, 100_bytes, 512_bytes}};
  Event& made = trace.add(EventKind::kAllocation, "conv1.out");
  made.start = made.end = 1200;
  made.bytes = 4096_bytes;
  made.address = 140101061443584;
  made.category = Category::kActivation;
  made.phase = trace.strings.intern("forward");
  made.stack = 1;
  Event& ran = trace.add(EventKind::kOperator, "conv \"1\"\n");
  ran.start = 1210;
  ran.end = 5310;
  ran.stream = {7};
  Event& gone = trace.add(EventKind::kFree);
  gone.start = gone.end = 9000;
  gone.bytes = 4096_bytes;
  gone.address = 140101061443584;
  return trace;
}

TEST(TraceFile, ReadsBackWhatItWrote) {
  const Trace trace = small_trace();
  const auto back = parse_trace(format_trace(trace));
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->initial, trace.initial);
  EXPECT_EQ(back->events.size(), trace.events.size());
  EXPECT_EQ(format_trace(*back), format_trace(trace));
}

TEST(TraceFile, NamesTheLineThatIsWrong) {
  const std::string head = "{\"plimsoll_trace\":1}\n";
  const auto expect_error = [&](const std::string& line, const std::string& part) {
    const auto got = parse_trace(head + line);
    ASSERT_FALSE(got) << line;
    EXPECT_EQ(got.error().code, ErrorCode::kBadInput);
    EXPECT_NE(got.error().message.find("line 2"), std::string::npos) << got.error().message;
    EXPECT_NE(got.error().message.find(part), std::string::npos) << got.error().message;
  };
  expect_error("{\"kind\":\"melt\"}", "unknown kind 'melt'");
  expect_error("{\"kind\":\"free\",\"bytes\":-1}", "'bytes' is out of range");
  expect_error("{\"kind\":\"free\",\"bytes\":18446744073709551615}", "out of range");
  expect_error("{\"kind\":\"free\",\"bytes\":1.5}", "not an integer");
  expect_error("{\"kind\":\"operator\",\"start\":5,\"end\":4}", "before 'start'");
  expect_error("{\"kind\":\"free\",\"stack\":1}", "'stack' is out of range");
  expect_error("[1]", "not a JSON object");
  expect_error("{\"kind\":", "line 2, column 9: this is not valid JSON");
  expect_error(std::string(2 << 20, ' '), "bytes are more than");
}

TEST(TraceFile, SaysWhatIsNoTrace) {
  const auto refusal = [](std::string_view text) { return parse_trace(text).error().message; };
  EXPECT_THAT(refusal("{\"traceEvents\":[\n]}"), ::testing::HasSubstr("written only"));
  EXPECT_THAT(refusal("\x89PNG\r\n"), ::testing::HasSubstr("neither a plimsoll trace"));
  EXPECT_THAT(refusal("<!doctype html>"), ::testing::HasSubstr("neither a plimsoll trace"));
}

TEST(TraceFile, RefusesWhatIsNotATrace) {
  EXPECT_FALSE(parse_trace(""));
  EXPECT_FALSE(parse_trace("{}"));
  const auto newer = parse_trace("{\"plimsoll_trace\":99}");
  ASSERT_FALSE(newer);
  EXPECT_NE(newer.error().message.find("version 99"), std::string::npos);
}

TEST(TraceFile, PeakLiveCountsWhatWasThereBefore) {
  Trace trace = small_trace();
  EXPECT_EQ(peak_live_bytes(trace), 4196_bytes);
}

TEST(Gzip, InflatesWhatItDeflatedAndKeepsTheLimit) {
  const std::string plain(3'000'000, 'x');
  const std::string packed = gzip(plain);
  EXPECT_TRUE(is_gzip(packed));
  EXPECT_EQ(inflate(packed, 3'000'000_bytes).value(), plain);
  EXPECT_FALSE(inflate(packed, 2'999'999_bytes));
  EXPECT_FALSE(inflate(packed.substr(0, packed.size() - 20), 3'000'000_bytes));
  EXPECT_EQ(inflate(packed + gzip("tail"), 4'000'000_bytes).value(), plain + "tail");
}

}  // namespace
}  // namespace plimsoll::trace
