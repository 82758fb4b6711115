#include "plimsoll/report/rank_views.h"

#include <gtest/gtest.h>

#include "plimsoll/report/timeline_of_trace.h"

namespace plimsoll::report {
namespace {

// Computes from `start` on for 4 s, then 2 s, with a collective of 3 s that begins in its second
// half.
Timeline rank_that_begins_at(std::int64_t start, std::int64_t later) {
  trace::Trace trace;
  const auto run = [&](const char* name, std::int64_t begin, std::int64_t end) {
    trace::Event& event = trace.add(trace::EventKind::kOperator, name);
    event.start = (start + begin) * 1'000'000'000;
    event.end = (start + end) * 1'000'000'000;
  };
  run("fc1/matmul", 0, 4);
  run("gradients/all_reduce", 3 + later, 6 + later);
  run("fc2/matmul", 6 + later, 8 + later);
  return timeline_of(trace, "rank", {});
}

TEST(RankViews, LayTheEndsOfTheFirstCollectivesOverEachOther) {
  const Timeline a = rank_that_begins_at(100, 0), b = rank_that_begins_at(7000, 2);
  const std::vector<RankView> views = rank_views({&a, &b}, {0, 1});
  ASSERT_EQ(views.size(), 2U);
  EXPECT_NEAR(views[0].offset_seconds, 2, 1e-9);
  EXPECT_NEAR(views[1].offset_seconds, 0, 1e-9);
  EXPECT_EQ(views[0].collectives, std::vector<std::int64_t>{1});
}

TEST(RankViews, AreOfTracesWithCollectives) {
  EXPECT_TRUE(has_collectives(rank_that_begins_at(100, 0)));
  Timeline alone = rank_that_begins_at(100, 0);
  std::erase_if(alone.operators, [&](const Operator& op) {
    return alone.texts.text(op.name).find("all_reduce") != std::string::npos;
  });
  EXPECT_FALSE(has_collectives(alone));
}

TEST(RankViews, CountWhatNoComputationHides) {
  const Timeline a = rank_that_begins_at(0, 0);
  const RankView view = rank_views({&a}, {0})[0];
  EXPECT_NEAR(view.computing_seconds, 6, 1e-9);
  EXPECT_NEAR(view.communication_seconds, 3, 1e-9);
  EXPECT_NEAR(view.exposed_seconds, 2, 1e-9);
}

TEST(RankViews, AreAskedForByTheNamesOfTraces) {
  EXPECT_EQ(rank_of_name("out/run.12.jsonl"), 12);
  EXPECT_EQ(rank_of_name("run.3"), 3);
  EXPECT_FALSE(rank_of_name("run.jsonl").has_value());
  EXPECT_FALSE(rank_of_name("v1.x.jsonl").has_value());
  EXPECT_EQ(ranks_of_names({"r.1.jsonl", "r.0.jsonl"}), (std::vector<int>{1, 0}));
  EXPECT_TRUE(ranks_of_names({"r.1.jsonl", "s.0.jsonl"}).empty());
  EXPECT_TRUE(ranks_of_names({"r.1.jsonl", "r.1.jsonl"}).empty());
  EXPECT_TRUE(ranks_of_names({"r.1.jsonl"}).empty());
  EXPECT_TRUE(ranks_of_names({"before.jsonl", "after.jsonl"}).empty());
}

}  // namespace
}  // namespace plimsoll::report
