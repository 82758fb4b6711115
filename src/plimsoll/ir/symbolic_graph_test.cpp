#include "plimsoll/ir/symbolic_graph.h"

#include <gtest/gtest.h>

#include "plimsoll/base/random.h"
#include "plimsoll/ir/text.h"

namespace plimsoll::ir {
namespace {

// A product over batch, a reshape of it, and a node that counts.
Graph at(std::int64_t batch, std::int64_t seq) {
  Graph graph;
  graph.name = "small";
  const ValueId x = graph.add_source("x", ValueKind::kInput, {DType::kF32, {batch, seq, 3}});
  const NodeId flat = graph.add_node({"reshape", "a", {x}, {}, {{"shape", Ints{batch * seq, 3}}}},
                                     {{DType::kF32, {batch * seq, 3}}}, ValueKind::kActivation);
  graph.add_node({"count",
                  "b",
                  {graph.node(flat).outputs[0]},
                  {},
                  {{"count", 49 * batch}, {"mode", std::string("batch")}, {"scale", 1.5}}},
                 {{DType::kF32, {seq, seq + 1}}}, ValueKind::kActivation);
  graph.outputs = {ValueId(graph.values.size() - 1)};
  return graph;
}

SymbolicGraph learned(std::int64_t batch, std::int64_t seq) {
  std::vector<Graph> samples;
  for (std::int64_t b = 0; b < 3; ++b) {
    for (std::int64_t s = 0; s < 3; ++s) samples.push_back(at(batch + b, seq + s));
  }
  auto out = generalize({{"batch", batch}, {"seq", seq}}, std::move(samples));
  EXPECT_TRUE(out) << out.error().message;
  return *std::move(out);
}

TEST(Polynomial, GoesThroughItsSamplesAndReadsBack) {
  Random random(7);
  for (int round = 0; round < 2000; ++round) {
    const std::vector<SymbolSize> first{{"x", random.below(1000)}, {"y", random.below(1000)}};
    std::vector<std::int64_t> c(9);
    for (std::int64_t& one : c) one = random.below(3) == 0 ? random.below(200) - 100 : 0;
    const auto exact = [&](std::int64_t x, std::int64_t y) {
      std::int64_t sum = 0;
      for (std::int64_t i = 0; i < 9; ++i)
        sum += c[static_cast<std::size_t>(i)] * (i / 3 > 0 ? x : 1) * (i / 3 > 1 ? x : 1) *
               (i % 3 > 0 ? y : 1) * (i % 3 > 1 ? y : 1);
      return sum;
    };
    std::vector<std::int64_t> samples;
    for (std::int64_t i = 0; i < 9; ++i)
      samples.push_back(exact(first[0].size + i / 3, first[1].size + i % 3));
    const auto found = Polynomial::through(first, samples);
    ASSERT_TRUE(found) << round;
    const std::vector<SymbolSize> elsewhere{{"x", random.below(500)}, {"y", random.below(500)}};
    EXPECT_EQ(found->at(elsewhere), exact(elsewhere[0].size, elsewhere[1].size)) << round;
    const auto read = evaluate(found->text(first), elsewhere);
    ASSERT_TRUE(read) << found->text(first) << ": " << read.error().message;
    EXPECT_EQ(*read, exact(elsewhere[0].size, elsewhere[1].size)) << found->text(first);
  }
}

TEST(Polynomial, IsWrittenAsOneWouldWriteIt) {
  const std::vector<SymbolSize> n{{"n", 4}};
  EXPECT_EQ(Polynomial::through(n, std::vector<std::int64_t>{4, 5, 6})->text(n), "n");
  EXPECT_EQ(Polynomial::through(n, std::vector<std::int64_t>{15, 24, 35})->text(n), "n^2-1");
  EXPECT_EQ(Polynomial::through(n, std::vector<std::int64_t>{-4, -5, -6})->text(n), "-n");
  EXPECT_EQ(Polynomial::through(n, std::vector<std::int64_t>{0, 0, 0})->text(n), "0");
  EXPECT_FALSE(Polynomial::through(n, std::vector<std::int64_t>{4, 5, 5}))
      << "rounded: no whole coefficients";
  EXPECT_FALSE(Polynomial::through(n, std::vector<std::int64_t>{INT64_MIN, INT64_MAX, INT64_MIN}));
}

TEST(Polynomial, RefusesWhatIsNoExpressionOrTooLarge) {
  const std::vector<SymbolSize> sizes{{"batch", 1L << 40}};
  for (const char* wrong :
       {"", "batch*", "*batch", "seq", "batch^", "batch^-1", "2batch", "batch batch", "batch*batch",
        "batch^99999999999", "1+", "--1", "9999999999999999999*batch"}) {
    EXPECT_FALSE(evaluate(wrong, sizes)) << wrong;
  }
  EXPECT_EQ(*evaluate("batch-batch+3*2", sizes), 6);
  EXPECT_EQ(*evaluate("one^99999999999", std::vector<SymbolSize>{{"one", 1}}), 1);
}

TEST(SymbolicGraph, BindsToWhatWouldHaveBeenBuilt) {
  const SymbolicGraph symbolic = learned(8, 16);
  for (const auto& [batch, seq] : {std::pair{1, 1}, {2, 64}, {8, 16}, {17, 5}, {1000, 1024}}) {
    const std::vector<SymbolSize> sizes{{"batch", batch}, {"seq", seq}};
    const auto bound = bind_sizes(symbolic, sizes);
    ASSERT_TRUE(bound) << bound.error().message;
    EXPECT_EQ(*bound, at(batch, seq));
    const auto read = parse_text(to_text(symbolic), sizes);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, at(batch, seq));
  }
  EXPECT_EQ(*parse_text(to_text(symbolic)), at(8, 16)) << "the sizes of its own line";
}

TEST(SymbolicGraph, IsWrittenWithItsSymbols) {
  EXPECT_EQ(to_text(learned(8, 16)),
            "plimsoll graph 1 \"small\"\n"
            "symbols batch=8 seq=16\n"
            "%0 input \"x\" fp32[batch,seq,3]\n"
            "%1 activation \"a/reshape\" fp32[batch*seq,3] = reshape(%0) {shape=[batch*seq,3]} "
            "forward \"a\"\n"
            "%2 activation \"b/count\" fp32[seq,seq+1] = count(%1) {count=49*batch, "
            "mode=\"batch\", scale=1.5} forward \"b\"\n"
            "output %2\n"
            "end\n");
}

TEST(SymbolicGraph, RefusesGraphsThatDifferInMoreThanNumbers) {
  std::vector<Graph> samples{at(1, 2), at(2, 2), at(3, 2)};
  samples[1].nodes[1].attributes.set("scale", 2.5);
  EXPECT_NE(generalize({{"batch", 1}}, samples).error().message.find("count of 'b'"),
            std::string::npos);
  samples = {at(1, 2), at(2, 2), at(3, 2)};
  samples[2].add_source("more", ValueKind::kInput, {});
  EXPECT_FALSE(generalize({{"batch", 1}}, samples));
  samples = {at(1, 2), at(2, 2), at(2, 2)};
  EXPECT_NE(generalize({{"batch", 1}}, samples).error().message.find("'x'"), std::string::npos)
      << "rounded sizes";
  EXPECT_EQ(bind_sizes(learned(1, 1), std::vector<SymbolSize>{{"width", 3}}).error().code,
            ErrorCode::kUsage);
  EXPECT_FALSE(
      bind_sizes(learned(1, 1), std::vector<SymbolSize>{{"batch", 1L << 62}, {"seq", 1L << 62}}));
}

TEST(SymbolicGraph, HostileSymbolsAreErrorsWithAPlace) {
  const auto error = [](const char* second_line, const char* shape) {
    const auto graph = parse_text(fmt::format(
        "plimsoll graph 1 \"g\"\n{}\n%0 input \"x\" fp32[{}]\nend\n", second_line, shape));
    return graph ? std::string("read") : graph.error().message;
  };
  EXPECT_EQ(error("symbols n=2", "n,2*n+1"), "read");
  EXPECT_EQ(error("symbols e=2", "e"), "read");
  for (const char* line : {"symbols ", "symbols n", "symbols n=", "symbols n=-1", "symbols n=x",
                           "symbols inf=2", "symbols a=1 b=1 c=1 d=1", "symbols n=1,"}) {
    EXPECT_EQ(error(line, "1").rfind("line 2", 0), 0u) << line;
  }
  for (const char* shape : {"m", "n-3", "n^64", "n*9223372036854775807", "n n", "n+"}) {
    EXPECT_EQ(error("symbols n=2", shape).rfind("line 3", 0), 0u) << shape;
  }
  EXPECT_EQ(error("", "n").rfind("line 3", 0), 0u) << "no symbols in this file";
}

}  // namespace
}  // namespace plimsoll::ir
