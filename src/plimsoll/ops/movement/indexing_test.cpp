#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/ops/evaluation/evaluate_call.h"

namespace plimsoll::ops {
namespace {

using ir::DType;
using ir::Ints;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();

Array run(std::string_view op, const std::vector<Array>& inputs,
          const ir::Attributes& attributes = {}) {
  auto out = evaluate_call(op, inputs, attributes);
  EXPECT_TRUE(out.has_value()) << op << ": " << (out ? "" : out.error().message);
  return out ? out->front() : Array();
}

std::string refusal(std::string_view op, const std::vector<ir::TensorType>& types,
                    const ir::Attributes& attributes = {}) {
  const auto out = infer_call(op, types, attributes);
  EXPECT_FALSE(out.has_value()) << op;
  return out ? "" : out.error().message;
}

const Array kData = Array::of_reals({3, 2}, {1, 2, 3, 4, 5, 6});

TEST(Gather, ReadsRowsAndCountsFromTheEnd) {
  EXPECT_EQ(run("gather", {kData, Array::of_integers({2}, {2, -3})}),
            Array::of_reals({2, 2}, {5, 6, 1, 2}));
  EXPECT_EQ(
      run("gather", {kData, Array::of_integers({}, {1}, DType::kI32)}, {{"axis", std::int64_t{1}}}),
      Array::of_reals({3}, {2, 4, 6}));
}

TEST(Gather, ReadsZeroOutside) {
  EXPECT_EQ(run("gather", {kData, Array::of_integers({3}, {3, kLowest, kHuge})}),
            Array::of_reals({3, 2}, {0, 0, 0, 0, 0, 0}));
}

TEST(Gather, RefusesWrongIndicesAndRanks) {
  const ir::TensorType data{DType::kF32, {3, 2}};
  EXPECT_THAT(refusal("gather", {data, {DType::kF32, {1}}}), HasSubstr("int32 or int64"));
  EXPECT_THAT(refusal("gather", {data, {DType::kI64, {1}}}, {{"axis", std::int64_t{2}}}),
              HasSubstr("axis 2"));
  EXPECT_THAT(refusal("gather", {data, {DType::kI64, {1, 1, 1, 1, 1, 1, 1, 1}}}),
              HasSubstr("rank"));
  EXPECT_THAT(refusal("gather", {{DType::kF32, {}}, {DType::kI64, {1}}}), HasSubstr("axis 0"));
}

TEST(GatherGrad, AddsRowsThatMeetAndDropsThoseOutside) {
  const Array dy = Array::of_reals({3, 2}, {1, 2, 10, 20, 100, 200});
  const ir::Attributes how{{"shape", Ints{2, 2}}};
  EXPECT_EQ(run("gather_grad", {dy, Array::of_integers({3}, {1, 1, 5})}, how),
            Array::of_reals({2, 2}, {0, 0, 11, 22}));
  const Array sum = Array::of_reals({2, 2}, {3, 4, 5, 6});
  EXPECT_EQ(run("gather_grad", {dy, Array::of_integers({3}, {1, 1, 5}), sum}, how),
            Array::of_reals({2, 2}, {3, 4, 16, 28}));
  EXPECT_THAT(refusal("gather_grad",
                      {{DType::kF32, {3, 2}}, {DType::kI64, {3}}, {DType::kF32, {2, 3}}}, how),
              HasSubstr("sum so far"));
  EXPECT_THAT(refusal("gather_grad", {{DType::kF32, {3, 2}}, {DType::kI64, {2}}}, how),
              HasSubstr("makes"));
}

// Rows 1 and 2 of a table of four: indices mean the whole table, those of other rows go nowhere.
TEST(GatherGrad, MakesSomeRowsOfATable) {
  const Array dy = Array::of_reals({5, 1}, {1, 10, 100, 1000, 10000});
  const Array indices = Array::of_integers({5}, {0, 1, 2, -1, -2});
  const ir::Attributes whole{{"axis", std::int64_t{0}}, {"shape", ir::Ints{4, 1}}};
  EXPECT_EQ(run("gather_grad", {dy, indices}, whole),
            Array::of_reals({4, 1}, {1, 10, 10100, 1000}));
  ir::Attributes some{
      {"axis", std::int64_t{0}}, {"shape", ir::Ints{2, 1}}, {"rows", ir::Ints{1, 4}}};
  EXPECT_EQ(run("gather_grad", {dy, indices}, some), Array::of_reals({2, 1}, {10, 10100}));
  const std::vector<ir::TensorType> types{{DType::kF32, {5, 1}}, {DType::kI64, {5}}};
  some.set("rows", ir::Ints{3, 4});
  EXPECT_THAT(refusal("gather_grad", types, some), HasSubstr("2 from 3 on, of a table of 4"));
  some.set("rows", ir::Ints{1});
  EXPECT_THAT(refusal("gather_grad", types, some), HasSubstr("expects the first row"));
}

TEST(GatherElements, ReplacesOneCoordinate) {
  EXPECT_EQ(run("gather_elements", {kData, Array::of_integers({2, 2}, {2, 0, 1, 9})}),
            Array::of_reals({2, 2}, {5, 2, 3, 0}));
  EXPECT_THAT(refusal("gather_elements", {{DType::kF32, {3, 2}}, {DType::kI64, {1, 3}}}),
              HasSubstr("do not fit"));
}

TEST(ScatterElements, CombinesAsAsked) {
  const Array indices = Array::of_integers({2, 1}, {1, 1});
  const Array updates = Array::of_reals({2, 1}, {10, 20});
  const auto with = [](const char* reduction) {
    return ir::Attributes{{"reduction", std::string(reduction)}};
  };
  EXPECT_THAT(run("scatter_elements", {kData, indices, updates}).reals,
              ElementsAre(1, 2, 20, 4, 5, 6));
  EXPECT_THAT(run("scatter_elements", {kData, indices, updates}, with("add")).reals,
              ElementsAre(1, 2, 33, 4, 5, 6));
  EXPECT_THAT(run("scatter_elements", {kData, indices, updates}, with("mul")).reals,
              ElementsAre(1, 2, 600, 4, 5, 6));
  EXPECT_THAT(run("scatter_elements", {kData, indices, updates}, with("min")).reals,
              ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(refusal("scatter_elements",
                      {{DType::kF32, {3}}, {DType::kI64, {1}}, {DType::kF32, {1}}}, with("avg")),
              HasSubstr("avg"));
  EXPECT_THAT(
      refusal("scatter_elements", {{DType::kF32, {3}}, {DType::kI64, {1}}, {DType::kF64, {1}}}),
      HasSubstr("updates"));
}

TEST(GatherNd, TakesMultiIndices) {
  EXPECT_THAT(run("gather_nd", {kData, Array::of_integers({2, 2}, {0, 1, -1, 0})}).reals,
              ElementsAre(2, 5));
  EXPECT_EQ(run("gather_nd", {kData, Array::of_integers({1, 1}, {1})}),
            Array::of_reals({1, 2}, {3, 4}));
  EXPECT_THAT(run("gather_nd", {kData, Array::of_integers({3, 1}, {0, 1, 0})},
                  {{"batch_dims", std::int64_t{1}}})
                  .reals,
              ElementsAre(1, 4, 5));
  EXPECT_THAT(run("gather_nd", {kData, Array::of_integers({1, 2}, {0, 7})}).reals, ElementsAre(0));
}

TEST(GatherNd, RefusesIndicesThatNameTooMuch) {
  const ir::TensorType data{DType::kF32, {3, 2}};
  EXPECT_THAT(refusal("gather_nd", {data, {DType::kI64, {1, 3}}}), HasSubstr("3 entries"));
  EXPECT_THAT(refusal("gather_nd", {data, {DType::kI64, {}}}), HasSubstr("batch_dims"));
  EXPECT_THAT(
      refusal("gather_nd", {data, {DType::kI64, {2, 1}}}, {{"batch_dims", std::int64_t{1}}}),
      HasSubstr("batch axis 0"));
  EXPECT_THAT(
      refusal("gather_nd", {data, {DType::kI64, {3, 1}}}, {{"batch_dims", std::int64_t{-1}}}),
      HasSubstr("batch_dims -1"));
}

TEST(ScatterNd, WritesBlocks) {
  const Array updates = Array::of_reals({2, 2}, {7, 8, 9, 10});
  EXPECT_THAT(run("scatter_nd", {kData, Array::of_integers({2, 1}, {2, 50}), updates}).reals,
              ElementsAre(1, 2, 3, 4, 7, 8));
}

TEST(OneHot, PutsTheNewAxisWhereAsked) {
  const Array indices = Array::of_integers({3}, {1, -1, 9});
  const ir::Attributes how{
      {"depth", std::int64_t{2}}, {"dtype", std::string("fp32")}, {"off", -1.0}};
  EXPECT_EQ(run("one_hot", {indices}, how),
            Array::of_reals({3, 2}, {-1, 1, -1, 1, -1, -1}, DType::kF32));
  ir::Attributes first = how;
  first.set("axis", std::int64_t{0});
  EXPECT_EQ(run("one_hot", {indices}, first),
            Array::of_reals({2, 3}, {-1, -1, -1, 1, 1, -1}, DType::kF32));
  EXPECT_THAT(refusal("one_hot", {{DType::kI64, {3}}},
                      {{"depth", std::int64_t{-2}}, {"dtype", std::string("fp32")}}),
              HasSubstr("negative"));
  EXPECT_THAT(
      refusal("one_hot", {{DType::kI64, {4}}}, {{"depth", kHuge}, {"dtype", std::string("fp32")}}),
      HasSubstr("64 bits"));
}

}  // namespace
}  // namespace plimsoll::ops
