#include "plimsoll/schedule/workload/split_tasks.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "plimsoll/base/random.h"
#include "plimsoll/schedule/fit.h"
#include "plimsoll/schedule/verify_schedule.h"
#include "plimsoll/schedule/workload/dag_file.h"

namespace plimsoll::schedule {
namespace {

// The example of the header: x is cut, y is read whole.
constexpr const char* kChain = R"({"nodes": [
  {"name": "a", "seconds": 4, "bytes": 800, "split": {"parts": 8}},
  {"name": "b", "seconds": 2, "bytes": 100, "scratch": 8, "inputs": ["a"],
   "split": {"parts": 4, "cut": ["a"]}},
  {"name": "c", "seconds": 1, "bytes": 10, "inputs": ["b"], "keep": true}]})";

Workload read(const std::string& text) {
  auto out = read_dag(text);
  EXPECT_TRUE(out) << out.error().message;
  return out ? *out : Workload{};
}

TEST(SplitTasks, SharesAreSmallAndWhatIsReadWholeIsWritten) {
  const Workload whole = read(kChain);
  EXPECT_EQ(most_parts(whole), 8);
  const WorkloadInParts two = in_parts(whole, 2);
  EXPECT_EQ(two.tasks, 2);
  ASSERT_TRUE(verify(two.workload));
  std::vector<std::string> names;
  for (const Task& task : two.workload.tasks) names.push_back(task.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a#1", "b#1", "a#2", "b#2", "c"}));
  EXPECT_EQ(two.workload.values[0].bytes, Bytes(400));
  EXPECT_EQ(two.workload.values[1].bytes, Bytes(100));
  EXPECT_EQ(two.workload.values[3].in_place, (InPlace{ValueId(1), false}));
  EXPECT_EQ(two.workload.tasks[1].scratch, Bytes(4));
  EXPECT_EQ(keep_all(two.workload).seconds, keep_all(whole).seconds);
  EXPECT_EQ(keep_all(whole).peak_bytes, Bytes(908));
  EXPECT_EQ(keep_all(two.workload).peak_bytes, Bytes(504));
}

TEST(SplitTasks, ATaskThatAllowsFewerPartsIsLeftWhole) {
  const WorkloadInParts eight = in_parts(read(kChain), 8);
  EXPECT_EQ(eight.tasks, 1);  // a alone, whose value is read whole
  ASSERT_TRUE(verify(eight.workload));
  EXPECT_EQ(eight.workload.tasks.size(), 10u);
}

// m reads a and feeds b: in parts, b¹ would need all of a first.
TEST(SplitTasks, ARegionThatSomethingOutsideFeedsIsLeftWhole) {
  const Workload workload = read(R"({"nodes": [
    {"name": "a", "bytes": 8, "seconds": 1, "split": {"parts": 2}},
    {"name": "m", "bytes": 8, "seconds": 1, "inputs": ["a"]},
    {"name": "b", "bytes": 8, "seconds": 1, "inputs": ["a", "m"],
     "split": {"parts": 2, "cut": ["a"]}}]})");
  EXPECT_EQ(in_parts(workload, 2).tasks, 0);
}

TEST(SplitTasks, AWrongSplitIsOneClearLine) {
  const auto refused = [](const char* split) {
    const auto read = read_dag(fmt::format(
        R"({{"nodes": [{{"name": "a"}}, {{"name": "b", "inputs": ["a"], "split": {}}}]}})", split));
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(refused(R"({"parts": 2, "cut": ["a"]})"), "");
  for (const char* wrong :
       {"3", "{}", R"({"parts": 0})", R"({"parts": 1e9})", R"({"parts": 2, "cut": ["b"]})",
        R"({"parts": 2, "cut": "a"})", R"({"parts": 2, "cut": ["z"]})", R"({"parts": 2, "sum": 1})",
        R"({"parts": 2, "sums": true})"})
    EXPECT_NE(refused(wrong).find("node 'b'"), std::string::npos) << wrong << refused(wrong);
}

TEST(SplitTasks, RandomGraphsInPartsAreRightAndReadBack) {
  int split = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    std::string nodes;
    const std::int64_t count = random.between(2, 14);
    for (std::int64_t n = 0; n < count; ++n) {
      std::string inputs, cut;
      for (std::int64_t i = 0; i < n; ++i) {
        if (!random.chance(2.0 / static_cast<double>(n))) continue;
        inputs += fmt::format("{}{}", inputs.empty() ? "" : ",", i);
        if (random.chance(0.7)) cut += fmt::format("{}{}", cut.empty() ? "" : ",", i);
      }
      nodes += fmt::format(
          R"({}{{"bytes": {}, "seconds": {}, "inputs": [{}], "keep": {}{}}})", n == 0 ? "" : ",",
          random.between(0, 90), random.between(1, 9), inputs, random.chance(0.1),
          random.chance(0.6) ? fmt::format(R"(, "split": {{"parts": {}, "cut": [{}], "sum": {}}})",
                                           random.between(1, 4), cut, random.chance(0.2))
                             : "");
    }
    const Workload workload = read(R"({"nodes": [)" + nodes + "]}");
    for (const std::int64_t parts : {2, 4}) {
      const WorkloadInParts made = in_parts(workload, parts);
      if (!verify(made.workload)) continue;  // regions that stand between each other
      split += made.tasks > 0;
      EXPECT_NEAR(keep_all(made.workload).seconds, keep_all(workload).seconds, 1e-9);
      const auto again = read_dag_tree({{"nodes", dag_nodes(made.workload)}});
      ASSERT_TRUE(again) << again.error().message;
      EXPECT_EQ(keep_all(*again).peak_bytes, keep_all(made.workload).peak_bytes);
    }
  }
  EXPECT_GE(split, 100);
}

}  // namespace
}  // namespace plimsoll::schedule
