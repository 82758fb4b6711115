#include "plimsoll/trace/chrome_trace.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace plimsoll::trace {
namespace {

TEST(ChromeTrace, ShowsOperatorsAndLiveBytes) {
  Trace trace;
  Event& made = trace.add(EventKind::kAllocation, "x");
  made.start = made.end = 1000;
  made.bytes = 10_bytes;
  made.address = 64;
  Event& ran = trace.add(EventKind::kOperator, "relu");
  ran.start = 2000;
  ran.end = 5000;
  Event& gone = trace.add(EventKind::kFree);
  gone.start = gone.end = 6000;
  gone.address = 64;
  const auto json = nlohmann::json::parse(format_chrome_trace(trace));
  const auto& events = json.at("traceEvents");
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0]["ph"], "b");
  EXPECT_EQ(events[1]["args"]["bytes"], 10);
  EXPECT_EQ(events[2]["dur"], 3.0);
  EXPECT_EQ(events[3]["ph"], "e");
  EXPECT_EQ(events[4]["args"]["bytes"], 0);
}

}  // namespace
}  // namespace plimsoll::trace
