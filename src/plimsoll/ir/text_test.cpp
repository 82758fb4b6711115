#include "plimsoll/ir/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plimsoll/base/random.h"
#include "plimsoll/ir/dot.h"
#include "plimsoll/ir/graph_json.h"

namespace plimsoll::ir {
namespace {

using ::testing::HasSubstr;

// The example of the header.
Graph tiny() {
  Graph g;
  g.name = "tiny";
  const ValueId x = g.add_source("x", ValueKind::kInput, {DType::kF32, {2, 3}});
  const ValueId w = g.add_source("fc.weight", ValueKind::kWeight, {DType::kF32, {3, 4}},
                                 {Init::Kind::kNormal, 0, 0.02});
  Node node;
  node.op = "linear";
  node.layer = "fc";
  node.inputs = {x, w, ValueId()};
  node.attributes.set("trans_w", std::int64_t{0});
  const NodeId made = g.add_node(node, {{DType::kF32, {2, 4}}}, ValueKind::kActivation);
  g.outputs = g.node(made).outputs;
  return g;
}

constexpr const char* kTinyText =
    "plimsoll graph 1 \"tiny\"\n"
    "%0 input \"x\" fp32[2,3]\n"
    "%1 weight \"fc.weight\" fp32[3,4] normal(0.0,0.02)\n"
    "%2 activation \"fc/linear\" fp32[2,4] = linear(%0, %1, _) {trans_w=0} forward \"fc\"\n"
    "output %2\n"
    "end\n";

std::string some_text(Random& random) {
  std::string out;
  for (std::int64_t i = random.below(6); i >= 0; --i) out += static_cast<char>(random.below(256));
  return out;
}

Attribute some_attribute(Random& random) {
  switch (random.below(6)) {
    case 0:
      return static_cast<std::int64_t>(random.next());
    case 1:
      return random.normal() * std::pow(10.0, static_cast<double>(random.between(-300, 300)));
    case 2:
      return some_text(random);
    case 3:
      return Ints(static_cast<std::size_t>(random.below(4)),
                  std::numeric_limits<std::int64_t>::min());
    case 4:
      return Reals(static_cast<std::size_t>(random.below(4)), random.normal());
    default:
      return random.chance(0.5) ? std::numeric_limits<double>::infinity() : 3.0;
  }
}

TensorType some_type(Random& random) {
  TensorType out{static_cast<DType>(random.below(kDTypeCount)), {}, {}};
  for (std::int64_t rank = random.below(5); rank > 0; --rank) out.shape.push_back(random.below(4));
  if (out.shape.rank() >= 3 && random.chance(0.4))
    out.layout = Layout::channels_last(out.shape.rank());
  if (!out.layout.is_row_major() && random.chance(0.5)) {
    out.layout.blocks[0] = {1, 16};
    out.layout.block_count = 1;
  }
  return out;
}

Graph some_graph(Random& random) {
  Graph g;
  g.name = some_text(random);
  for (std::int64_t i = random.below(20); i >= 0; --i) {
    const TensorType type = some_type(random);
    if (random.chance(0.5)) {
      const auto kind = static_cast<ValueKind>(random.below(5));
      const Init init = random.chance(0.5) ? Init{static_cast<Init::Kind>(random.below(5)),
                                                  random.normal(), random.normal()}
                                           : Init{};
      const ValueId id = g.add_source(fmt::format("{}{}", some_text(random), i), kind, type, init);
      if (kind != ValueKind::kConstant) continue;
      std::vector<std::byte> data(static_cast<std::size_t>(bytes_of(type).value));
      for (std::byte& byte : data) byte = static_cast<std::byte>(random.below(256));
      g.constants.push_back({id, std::move(data)});
      continue;
    }
    Node node;
    node.op = random.chance(0.8) ? "some_op.2" : some_text(random);
    node.layer = random.chance(0.5) ? "" : some_text(random);
    node.phase = static_cast<Phase>(random.below(kPhaseCount));
    for (std::int64_t n = random.below(4); n > 0; --n) {
      node.inputs.push_back(g.values.empty() || random.chance(0.2)
                                ? ValueId()
                                : ValueId(static_cast<std::size_t>(
                                      random.below(static_cast<std::int64_t>(g.values.size())))));
    }
    for (std::int64_t n = random.below(4); n > 0; --n)
      node.attributes.set(random.chance(0.8) ? fmt::format("a{}", n) : some_text(random),
                          some_attribute(random));
    const std::vector<TensorType> types(static_cast<std::size_t>(random.below(4)), type);
    g.add_node(std::move(node), types,
               random.chance(0.5) ? ValueKind::kActivation : ValueKind::kGradient);
  }
  for (std::int64_t n = random.below(3); n > 0 && !g.values.empty(); --n) {
    g.outputs.emplace_back(
        static_cast<std::size_t>(random.below(static_cast<std::int64_t>(g.values.size()))));
  }
  return g;
}

TEST(GraphText, LooksAsDocumented) {
  EXPECT_EQ(to_text(tiny()), kTinyText);
}

TEST(GraphText, ReadsBackTheExample) {
  const auto graph = parse_text(kTinyText);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(*graph, tiny());
}

TEST(GraphText, AnyVerifiedGraphReadsBackEqual) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Random random(seed);
    const Graph graph = some_graph(random);
    ASSERT_TRUE(verify(graph)) << verify(graph).error().message;
    const std::string text = to_text(graph);
    const auto again = parse_text(text);
    ASSERT_TRUE(again) << again.error().message << "\n" << text;
    ASSERT_TRUE(*again == graph) << text;
  }
}

TEST(GraphText, NodesMayStandInAnotherOrderThanTheirValues) {
  Graph g = tiny();
  Node relu;
  relu.op = "relu";
  relu.inputs = {ValueId(2)};
  g.add_node(relu, {{DType::kF32, {2, 4}}}, ValueKind::kActivation);
  std::swap(g.values[2], g.values[3]);
  g.nodes[0].outputs = {ValueId(3)};
  g.nodes[1].outputs = {ValueId(2)};
  g.nodes[1].inputs = {ValueId(3)};
  ASSERT_TRUE(verify(g)) << verify(g).error().message;
  const auto again = parse_text(to_text(g));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, g);
}

TEST(GraphText, UpdatesAndCommentsAreRead) {
  const auto graph = parse_text(
      "# a counter\n\nplimsoll graph 1 \"count\"\n"
      "%0 state \"step\" int64[] constant(0.0,0.0)  # starts at zero\n"
      "%1 gradient \"next\" int64[] = increment(%0) update\r\n"
      "update %0 -> %1\nend");
  ASSERT_TRUE(graph) << graph.error().message;
  ASSERT_EQ(graph->updates.size(), 1U);
  EXPECT_EQ(graph->updates[0].next, ValueId(1));
  EXPECT_EQ(graph->nodes[0].phase, Phase::kUpdate);
}

struct Refusal {
  const char* body;
  const char* message;
};

class GraphTextRefuses : public ::testing::TestWithParam<Refusal> {};

TEST_P(GraphTextRefuses, WithOneClearLine) {
  const auto graph = parse_text(fmt::format("plimsoll graph 1 \"g\"\n{}\nend\n", GetParam().body));
  ASSERT_FALSE(graph);
  EXPECT_EQ(graph.error().code, ErrorCode::kBadInput);
  EXPECT_THAT(graph.error().message, HasSubstr(GetParam().message));
  EXPECT_EQ(graph.error().message.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(
    Hostile, GraphTextRefuses,
    ::testing::Values(
        Refusal{"%0 input \"x\" fp32[-1]", "line 2, column 22: shape has the negative extent -1"},
        Refusal{"%0 input \"x\" fp32[4294967296,4294967296]", "more elements than fit"},
        Refusal{"%0 input \"x\" fp32[99999999999999999999]", "expected an integer of 64 bits"},
        Refusal{"%0 input \"x\" fp64[4611686018427387904]", "does not fit 64 bits"},
        Refusal{"%0 input \"x\" fp32[1,1,1,1,1,1,1,1,1]", "rank 9"},
        Refusal{"%0 input \"x\" fp32[2,2,2]@021:65535b1:65535b1:65535b1:65535b1",
                "does not fit 64 bits"},
        Refusal{"%0 input \"x\" fp32[2,2,2]@0219", "is no layout"},
        Refusal{"%0 input \"x\" fp33[2]", "'fp33' is no dtype"},
        Refusal{"%0 inputt \"x\" fp32[2]", "'inputt' is no kind of value"},
        Refusal{"%0 input \"x fp32[2]", "the string is not closed"},
        Refusal{"%0 input \"\\q\" fp32[2]", "a backslash in a string"},
        Refusal{"%7 input \"x\" fp32[2]", "ids run from 0 without gaps"},
        Refusal{"%4294967295 input \"x\" fp32[2]", "expected the number of a value"},
        Refusal{"%4294967294 input \"x\" fp32[2]", "ids run from 0 without gaps"},
        Refusal{"%0 input \"x\" fp32[2]\n%0 input \"y\" fp32[2]",
                "line 3, column 21: value %0 is defined twice"},
        Refusal{"%0 input \"x\" fp32[2]\n%1 input \"x\" fp32[2]", "the name stands twice"},
        Refusal{"%0 activation \"y\" fp32[2] = relu(%0) forward", "value %0 is not defined above"},
        Refusal{"%0 activation \"y\" fp32[2] = relu(%1) forward\n%1 activation \"z\" fp32[2] = "
                "relu(%0) forward",
                "value %1 is not defined above"},
        Refusal{"%0 activation \"y\" fp32[2] = relu(%0", "not defined"},
        Refusal{"%0 activation \"y\" fp32[2] = relu() sideways", "'sideways' is no phase"},
        Refusal{"%0 activation \"y\" fp32[2] = relu() {a=1, a=2} forward",
                "attribute 'a' stands twice"},
        Refusal{"%0 activation \"y\" fp32[2] = relu() {a=[1,} forward", "expected an integer"},
        Refusal{"%0 activation \"y\" fp32[2] = relu() {a=1e999} forward", "expected a number"},
        Refusal{"%0 activation \"y\" fp32[2]", "needs a node that makes it"},
        Refusal{"%0 input \"y\" fp32[2] = relu() forward", "cannot be made by a node"},
        Refusal{"%0 constant \"c\" fp32[2] data 0x00", "has 1 bytes of data"},
        Refusal{"%0 constant \"c\" fp32[2] data 0x000", "an odd number"},
        Refusal{"%0 constant \"c\" fp32[2]", "1 constants have 0 pieces of data"},
        Refusal{"%0 input \"x\" uint8[1] data 0x00", "0 constants have 1 pieces of data"},
        Refusal{"output %0", "not defined"}, Refusal{"update %0 -> %1", "not defined"},
        Refusal{"%0 input \"x\" fp32[2] gaussian(0,1)", "'gaussian' is no initialisation"},
        Refusal{"end\nend", "there is more after"}, Refusal{"begin", "found 'begin'"},
        Refusal{"%0 input \"x\" fp32[2] rest", "'rest' is no initialisation"}));

TEST(GraphText, RefusesEveryTruncation) {
  const std::string whole = kTinyText;
  for (std::size_t size = 0; size + 1 < whole.size(); ++size) {
    EXPECT_FALSE(parse_text(whole.substr(0, size))) << "cut after " << size << " bytes";
  }
}

TEST(GraphText, RefusesAnotherVersion) {
  const auto graph = parse_text("plimsoll graph 2 \"g\"\nend\n");
  ASSERT_FALSE(graph);
  EXPECT_THAT(graph.error().message, HasSubstr("version 2 of the format; this program reads 1"));
}

TEST(GraphText, SurvivesRandomDamage) {
  Random random(7);
  const std::string whole = kTinyText;
  for (int round = 0; round < 20000; ++round) {
    std::string damaged = whole;
    for (std::int64_t n = random.between(1, 3); n > 0; --n) {
      const auto at =
          static_cast<std::size_t>(random.below(static_cast<std::int64_t>(damaged.size())));
      if (random.chance(0.3))
        damaged.erase(at, 1);
      else if (random.chance(0.5))
        damaged.insert(
            at, 1,
            whole[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(whole.size())))]);
      else
        damaged[at] = static_cast<char>(random.below(256));
    }
    if (const auto graph = parse_text(damaged)) {
      EXPECT_TRUE(verify(*graph));
    }
  }
}

TEST(GraphText, RefusesMoreAttributesThanAnyOperatorHas) {
  std::string list;
  for (int i = 0; i < 300; ++i) list += fmt::format("{}a{}=1", i ? "," : "", i);
  const auto graph =
      parse_text(fmt::format("plimsoll graph 1 \"g\"\n= op() {{{}}} forward\nend\n", list));
  ASSERT_FALSE(graph);
  EXPECT_THAT(graph.error().message, HasSubstr("more than 256 attributes"));
}

TEST(GraphJson, SaysWhatTheTextSays) {
  const auto json = to_json(tiny());
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["values"][1]["name"], "fc.weight");
  EXPECT_EQ(json["values"][1]["bytes"], 48);
  EXPECT_EQ(json["values"][1]["init"]["kind"], "normal");
  EXPECT_EQ(json["nodes"][0]["inputs"].dump(), "[0,1,null]");
  EXPECT_EQ(json["nodes"][0]["attributes"]["trans_w"], 0);
  EXPECT_EQ(json["outputs"].dump(), "[2]");
}

TEST(GraphDot, HasABoxPerNodeAndEscapesNames) {
  Graph g = tiny();
  g.name = "a\"b";
  const std::string dot = to_dot(g);
  EXPECT_THAT(dot, HasSubstr("digraph \"a\\\"b\""));
  EXPECT_THAT(dot, HasSubstr("n0 [shape=box"));
  EXPECT_THAT(dot, HasSubstr("v1 -> n0"));
}

}  // namespace
}  // namespace plimsoll::ir
