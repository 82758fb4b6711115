#include "plimsoll/schedule/workload/dag_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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

TEST(DagFile, NodesOfAWorkloadReadBack) {
  const auto workload = read_dag(R"({"nodes":[
    {"name":"a","seconds":0.1,"bytes":10,"swap":false,"recompute":false,"block":3},
    {"name":"b","seconds":2,"bytes":10,"scratch":3,"inputs":["a"],"in_place":"a","cheap":true,
     "encodings":[
       {"name":"half","bytes":5,"encode_seconds":1,"decode_seconds":2,"lossless":false}]},
    {"name":"c","inputs":["a","b"],"keep":true}]})");
  ASSERT_TRUE(workload) << workload.error().message;
  const auto again = read_dag_tree(nlohmann::json{{"nodes", dag_nodes(*workload)}});
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, *workload);
}

}  // namespace
}  // namespace plimsoll::schedule
