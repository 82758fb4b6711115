#include "plimsoll/schedule/workload/dag_file.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plimsoll/schedule/fit.h"

namespace plimsoll::schedule {
namespace {

TEST(DagFile, ReadsNodesByNameAndByPlace) {
  const auto workload = read_dag(R"({"nodes":[
    {"name":"a","seconds":1,"bytes":10},
    {"name":"b","seconds":2,"bytes":5,"scratch":3,"inputs":["a"]},
    {"name":"c","seconds":1,"bytes":1,"inputs":[0,1,"a"],"keep":true}]})");
  ASSERT_TRUE(workload) << workload.error().message;
  ASSERT_EQ(workload->tasks.size(), 3u);
  EXPECT_EQ(workload->tasks[2].inputs, (std::vector<ValueId>{ValueId(0), ValueId(1)}));
  EXPECT_EQ(keep_all(*workload).peak_bytes, Bytes(18));
  EXPECT_TRUE(workload->values[2].keep);
}

TEST(DagFile, TakesTheGivenOrderOrFindsOne) {
  const auto given = read_dag(R"({"nodes":[{"name":"a"},{"name":"b"}],"order":["b","a"]})");
  ASSERT_TRUE(given);
  EXPECT_EQ(given->tasks[0].name, "b");
  const auto found = read_dag(R"({"nodes":[{"name":"a","inputs":["b"]},{"name":"b"}]})");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->tasks[0].name, "b");
}

TEST(DagFile, RejectsWhatIsWrongAndSaysWhere) {
  const auto message = [](const char* text) {
    const auto workload = read_dag(text);
    return workload ? std::string() : workload.error().message;
  };
  EXPECT_NE(message("{"), "");
  EXPECT_NE(message("[]"), "");
  EXPECT_NE(message(R"({"nodes":[{"name":"a","inputs":["a"]}]})").find("cycle"), std::string::npos);
  EXPECT_NE(message(R"({"nodes":[{"name":"a","inputs":["x"]}]})").find("'x'"), std::string::npos);
  EXPECT_NE(message(R"({"nodes":[{"name":"a"},{"name":"a"}]})").find("twice"), std::string::npos);
  EXPECT_NE(message(R"({"nodes":[{"name":"a","bytes":-1}]})").find("bytes"), std::string::npos);
  EXPECT_NE(message(R"({"nodes":[{"name":"a","bytes":1e300}]})").find("bytes"), std::string::npos);
  EXPECT_NE(message(R"({"nodes":[{"name":"a","bytes":18446744073709551615}]})").find("bytes"),
            std::string::npos);
  EXPECT_NE(message(R"({"nodes":[{"name":"a","seconds":"x"}]})").find("seconds"),
            std::string::npos);
  EXPECT_NE(message(R"({"nodes":[{"name":"a"},{"name":"b","inputs":["a"]}],"order":["b","a"]})")
                .find("before"),
            std::string::npos);
  EXPECT_NE(message(R"({"nodes":[{"name":"a"},{"name":"b"}],"order":["b"]})").find("order"),
            std::string::npos);
  EXPECT_NE(message((std::string(100'000, '[')).c_str()).find("deep"), std::string::npos);
}

TEST(DagFile, WritesTheScheduleByName) {
  const auto workload =
      read_dag(R"({"nodes":[{"name":"a","bytes":1},{"name":"b","bytes":1,"inputs":["a"]}]})");
  ASSERT_TRUE(workload);
  std::string text = schedule_to_json(*workload, keep_all(*workload));
  text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c == ' ' || c == '\n'; }),
             text.end());
  EXPECT_EQ(text,
            R"({"schema":1,"steps":[{"compute":"a"},{"compute":"b"},{"drop":"a"},{"drop":"b"}]})");
}

}  // namespace
}  // namespace plimsoll::schedule
