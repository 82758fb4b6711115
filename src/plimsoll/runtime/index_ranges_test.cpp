#include "plimsoll/runtime/index_ranges.h"

#include <gtest/gtest.h>

#include "plimsoll/ops/functions.h"

namespace plimsoll::runtime {
namespace {

using ops::Builder;
using ops::Var;

constexpr ir::TensorType int64s(ir::Shape shape) {
  return {ir::DType::kI64, shape, {}};
}

TEST(IndexRanges, LabelsAndTokensAreFollowedThroughViewsAndCasts) {
  Builder b("net");
  const Var tokens = b.input("tokens", {ir::DType::kI32, {2, 3}, {}});
  const Var table = b.weight("table", {ir::DType::kF32, {50, 7}, {}}, {});
  const Var rows = ops::gather(table, ops::reshape(tokens, {6}), 0);
  const Var labels = b.input("labels", int64s({2, 3}));
  const Var loss = ops::cross_entropy(rows, ops::reshape(labels, {6})).loss;
  const ir::Graph graph = *b.finish({loss});
  const std::vector<IndexRange> found = index_ranges(graph);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(graph.value(found[0].input).name, "tokens");
  EXPECT_EQ(found[0].low, -50);
  EXPECT_EQ(found[0].high, 50);
  EXPECT_EQ(graph.value(found[1].input).name, "labels");
  EXPECT_EQ(found[1].high, 7);
  EXPECT_EQ(found[1].ignored, -100);

  const std::vector<std::int64_t> content{0, 6, -100, 1, 7, 2};
  const ir::Value& value = graph.value(found[1].input);
  const auto bad = find_bad_index(value, std::as_bytes(std::span(content)), found[1]);
  ASSERT_TRUE(bad.has_value());
  EXPECT_EQ(bad->element, 4);
  EXPECT_EQ(describe(value, found[1], *bad),
            "input 'labels': element [1, 1] is 7; cross_entropy takes 0 to 6, or -100 for none");
  const std::vector<std::int64_t> fine{0, 6, -100, 1, 3, 2};
  EXPECT_FALSE(find_bad_index(value, std::as_bytes(std::span(fine)), found[1]).has_value());

  const std::vector<std::int32_t> ids{0, 49, -50, -51, 1, 2};
  const ir::Value& ids_value = graph.value(found[0].input);
  const auto far = find_bad_index(ids_value, std::as_bytes(std::span(ids)), found[0]);
  ASSERT_TRUE(far.has_value());
  EXPECT_EQ(describe(ids_value, found[0], *far),
            "input 'tokens': element [1, 0] is -51; gather takes 0 to 49, or -50 to -1 from the "
            "end");
}

// Micro-batches read rows of the input, each its own; a shift by one is not followed.
TEST(IndexRanges, OfSlicesOnlyTheirRowsAreCompared) {
  Builder b("net");
  const Var logits = b.input("logits", {ir::DType::kF32, {2, 5}, {}});
  const Var labels = b.input("labels", int64s({4}));
  const auto rows = [&](std::int64_t first, std::int64_t end, std::int64_t step) {
    return b.call1(
        "slice", {labels},
        {{"starts", ir::Ints{first}}, {"ends", ir::Ints{end}}, {"steps", ir::Ints{step}}});
  };
  const Var second = ops::cross_entropy(logits, rows(2, 4, 1)).loss;
  const Var skipping = ops::cross_entropy(logits, rows(0, 4, 2)).loss;
  const ir::Graph graph = *b.finish({second, skipping});
  const std::vector<IndexRange> found = index_ranges(graph);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].first, 2);
  EXPECT_EQ(found[0].end, 4);
  const std::vector<std::int64_t> outside_first{9, 9, 0, 4};
  EXPECT_FALSE(find_bad_index(graph.value(found[0].input), std::as_bytes(std::span(outside_first)),
                              found[0]));
}

}  // namespace
}  // namespace plimsoll::runtime
