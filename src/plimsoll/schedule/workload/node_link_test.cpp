#include "plimsoll/schedule/workload/node_link.h"

#include <gtest/gtest.h>

#include "plimsoll/schedule/workload/dag_file.h"

namespace plimsoll::schedule {
namespace {

std::string refusal(const std::string& text) {
  const auto workload = read_dag(text);
  return workload ? "accepted" : workload.error().message;
}

std::string with_node(const std::string& attributes) {
  return R"({"nodes":[{"id":0,"bytes":7,"cost":5},{)" + attributes +
         R"(}],"links":[{"source":0,"target":1}]})";
}

TEST(NodeLink, BothSpellingsOfNetworkxAreTheSameGraph) {
  // As networkx 2 and 3.4 write the same MultiDiGraph: a label, a tuple for an id, parallel edges.
  const std::string nodes =
      R"("nodes":[{"id":"a","bytes":4096,"seconds":1.5,"label":"first"},
                  {"id":[1,2],"bytes":16,"seconds":0.5,"keep":true}],)";
  const std::string edges =
      R"([{"source":"a","target":[1,2],"key":0},{"source":"a","target":[1,2],"key":1}])";
  const std::string head = R"({"directed":true,"multigraph":true,"graph":{"name":"x"},)";
  const auto old_one = read_dag(head + nodes + R"("links":)" + edges + "}");
  const auto new_one = read_dag(head + nodes + R"("edges":)" + edges + "}");
  ASSERT_TRUE(old_one) << old_one.error().message;
  ASSERT_TRUE(new_one) << new_one.error().message;
  EXPECT_EQ(*old_one, *new_one);
  ASSERT_EQ(old_one->tasks.size(), 2U);
  EXPECT_EQ(old_one->tasks[1].name, "[1,2]");
  EXPECT_EQ(old_one->tasks[1].inputs, std::vector<ValueId>{ValueId(0)});
  EXPECT_EQ(old_one->tasks[0].seconds, 1.5);
  EXPECT_EQ(old_one->values[0].bytes, Bytes(4096));
  EXPECT_TRUE(old_one->values[1].keep);
}

TEST(NodeLink, TakesTheAttributesOfPublishedGraphs) {
  const auto checkmate = read_dag(
      R"({"directed":true,"nodes":[
          {"name":"conv1_pad","backward":false,"cost_cpu":90,"cost_ram":311040000,"id":0},
          {"name":"conv1","backward":true,"cost_cpu":10,"cost_ram":5,"id":1}],
        "links":[{"source":0,"target":1}]})");
  ASSERT_TRUE(checkmate) << checkmate.error().message;
  EXPECT_EQ(checkmate->tasks[0].name, "conv1_pad");
  EXPECT_DOUBLE_EQ(checkmate->tasks[0].seconds, 90e-6);
  EXPECT_EQ(checkmate->values[0].bytes, Bytes(311040000));
  const auto layered = read_dag(
      R"({"directed":true,"graph":{"max_cost":7,"order":[1,0,2]},"nodes":[
          {"out_cost":790,"param_cost":0,"duration":3,"name":0},
          {"out_cost":1,"param_cost":0,"duration":0,"name":1},
          {"out_cost":1,"param_cost":0,"duration":0,"name":2}],
        "links":[{"0":0,"1":2}]})");
  ASSERT_TRUE(layered) << layered.error().message;
  EXPECT_EQ(layered->tasks[0].name, "1");  // the order it is meant to be run in
  EXPECT_DOUBLE_EQ(layered->tasks[1].seconds, 3e-6);
  EXPECT_EQ(layered->tasks[2].inputs, std::vector<ValueId>{ValueId(1)});
}

TEST(NodeLink, RefusesWhatItWouldHaveToLeaveOut) {
  const std::pair<std::string, const char*> faults[] = {
      {with_node(R"("id":1,"cost":1)"), "node '1': has no size"},
      {with_node(R"("id":1,"bytes":1)"), "node '1': has no cost"},
      {with_node(R"("id":1,"bytes":1,"cost":1,"weight":3)"), "node '1': unknown key `weight` (3)"},
      {with_node(R"("id":1,"bytes":1,"cost":1,"seconds":3)"), "has `seconds` and `cost`"},
      {with_node(R"("id":1,"bytes":-1,"cost":1)"), "`bytes` is -1"},
      {with_node(R"("id":1,"bytes":"x","cost":1)"), "`bytes` is \"x\""},
      {with_node(R"("id":0,"bytes":1,"cost":1)"), "node 1: the id 0 is used twice"},
      {with_node(R"("bytes":1,"cost":1)"), "node 1: has no `id`"},
      {with_node(R"("id":1,"out_cost":1,"duration":1,"param_cost":9)"), "`param_cost` (9)"},
      {with_node(R"("id":1,"bytes":1,"cost":1,"in_place":7)"), "there is no node 7"},
      {R"({"nodes":[3],"links":[]})", "node 0: is 3"},
      {R"({"nodes":3,"links":[]})", "array `nodes`"},
      {R"({"nodes":[],"links":3})", "`links` must be an array"},
      {R"({"nodes":[],"links":[],"edges":[]})", "`links` and `edges`"},
      {R"({"nodes":[],"links":[],"weights":[]})", "unknown key `weights`"},
      {R"({"directed":false,"nodes":[],"links":[]})", "`directed` is false"},
      {R"({"nodes":[],"edges":[[0,1]]})", "`edges` 0: is [0,1], expected an object"},
      {R"({"nodes":[],"links":[{"source":0}]})", "there is no node 0"},
      {R"({"nodes":[{"id":0,"bytes":1,"cost":1}],"links":[{"source":0}]})", "has no `target`"},
      {R"({"nodes":[{"id":0,"bytes":1,"cost":1}],"links":[{"source":0,"target":9}]})",
       "`links` 0: there is no node 9"},
      {R"({"nodes":[{"id":0,"bytes":1,"cost":1}],"links":[{"source":0,"target":0}]})", "cycle"},
      {R"({"nodes":[{"id":0,"bytes":1,"cost":1},{"id":1,"bytes":1,"cost":1}],
           "links":[{"source":0,"target":1,"weight":3}]})",
       "`links` 0: unknown key `weight` (3); sizes and costs belong to nodes"},
      {R"({"nodes":[],"links":[],"graph":{"order":7}})", "`order` must be an array"},
      {R"({"nodes":[],"links":[],"graph":{"order":[7]}})", "`order`: there is no node 7"},
      {R"({"nodes":[],"links":[],"graph":{"node_default":{"bytes":3}}})", "`node_default`"},
      {R"({"nodes":[],"links":[],"graph":7})", "`graph` is 7"},
  };
  for (const auto& [text, words] : faults)
    EXPECT_NE(refusal(text).find(words), std::string::npos) << text << "\n" << refusal(text);
}

}  // namespace
}  // namespace plimsoll::schedule
