#include <cmath>
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

std::vector<Array> run_all(std::string_view op, const Array& input,
                           const ir::Attributes& attributes) {
  auto out = evaluate_call(op, std::vector<Array>{input}, attributes);
  EXPECT_TRUE(out.has_value()) << op << ": " << (out ? "" : out.error().message);
  return out ? *out : std::vector<Array>(2);
}

Array run(std::string_view op, const Array& input, const ir::Attributes& attributes = {}) {
  return run_all(op, input, attributes).front();
}

std::string refusal(std::string_view op, const ir::TensorType& type,
                    const ir::Attributes& attributes = {}) {
  const auto out = infer_call(op, {type}, attributes);
  EXPECT_FALSE(out.has_value()) << op;
  return out ? "" : out.error().message;
}

const Array kRows = Array::of_reals({2, 3}, {1, 5, 2, 4, 3, 6});

TEST(Reduction, ReducesAllOrSomeAxes) {
  EXPECT_EQ(run("reduce_sum", kRows), Array::of_reals({}, {21}));
  EXPECT_EQ(run("reduce_mean", kRows, {{"axes", Ints{0}}}), Array::of_reals({3}, {2.5, 4, 4}));
  EXPECT_EQ(run("reduce_max", kRows, {{"axes", Ints{-1}}, {"keepdims", std::int64_t{1}}}),
            Array::of_reals({2, 1}, {5, 6}));
  EXPECT_EQ(run("reduce_min", kRows, {{"axes", Ints{1}}}), Array::of_reals({2}, {1, 3}));
  EXPECT_EQ(run("reduce_prod", kRows, {{"axes", Ints{1, 0}}}), Array::of_reals({}, {720}));
  EXPECT_EQ(run("reduce_sum", kRows, {{"axes", Ints{}}}), kRows);
}

TEST(Reduction, OfNothingIsTheNeutralElement) {
  const Array nothing = Array::of_reals({0, 2}, {});
  EXPECT_THAT(run("reduce_sum", nothing, {{"axes", Ints{0}}}).reals, ElementsAre(0, 0));
  EXPECT_THAT(run("reduce_prod", nothing, {{"axes", Ints{0}}}).reals, ElementsAre(1, 1));
  EXPECT_TRUE(std::isnan(run("reduce_mean", nothing).reals[0]));
  EXPECT_THAT(refusal("reduce_max", nothing.type), HasSubstr("no extreme"));
  EXPECT_TRUE(run("reduce_max", nothing, {{"axes", Ints{1}}}).reals.empty());
}

TEST(Reduction, KeepsNanAndUnsignedOrder) {
  EXPECT_TRUE(std::isnan(run("reduce_max", Array::of_reals({3}, {1, std::nan(""), 3})).reals[0]));
  EXPECT_THAT(run("reduce_max", Array::of_integers({2}, {1, -1}, DType::kU64)).integers,
              ElementsAre(-1));
}

TEST(Reduction, RefusesWrongAxes) {
  EXPECT_THAT(refusal("reduce_sum", kRows.type, {{"axes", Ints{2}}}), HasSubstr("axis 2"));
  EXPECT_THAT(refusal("reduce_sum", kRows.type, {{"axes", Ints{0, -2}}}), HasSubstr("twice"));
  EXPECT_THAT(refusal("reduce_sum", kRows.type, {{"axes", Ints(100, 0)}}),
              HasSubstr("100 entries"));
  EXPECT_THAT(refusal("reduce_sum", {DType::kBool, {2}}), HasSubstr("cast it"));
}

TEST(RunningSum, GoesBothWays) {
  const Array x = Array::of_integers({3}, {1, 2, 3});
  const ir::Attributes exclusive{{"exclusive", std::int64_t{1}}};
  const ir::Attributes reverse{{"reverse", std::int64_t{1}}};
  EXPECT_THAT(run("cumsum", x).integers, ElementsAre(1, 3, 6));
  EXPECT_THAT(run("cumsum", x, exclusive).integers, ElementsAre(0, 1, 3));
  EXPECT_THAT(run("cumsum", x, reverse).integers, ElementsAre(6, 5, 3));
  EXPECT_THAT(run("cumsum", kRows, {{"axis", std::int64_t{0}}}).reals,
              ElementsAre(1, 5, 2, 5, 8, 8));
  EXPECT_THAT(refusal("cumsum", {DType::kF32, {}}), HasSubstr("axis 0"));
}

TEST(SumSquares, IsWideEnough) {
  EXPECT_EQ(run("sum_squares", Array::of_reals({2}, {3, 4}, DType::kF16)),
            Array::of_reals({}, {25}, DType::kF32));
  EXPECT_EQ(run("sum_squares", Array::of_reals({1}, {3})).type.dtype, DType::kF64);
}

TEST(Ranking, FirstOrLastAmongEquals) {
  const Array x = Array::of_reals({4}, {1, 7, 7, 0});
  EXPECT_THAT(run("argmax", x).integers, ElementsAre(1));
  EXPECT_THAT(run("argmax", x, {{"last", std::int64_t{1}}}).integers, ElementsAre(2));
  EXPECT_EQ(run("argmin", kRows, {{"axis", std::int64_t{1}}, {"keepdims", std::int64_t{1}}}),
            Array::of_integers({2, 1}, {0, 1}));
  EXPECT_THAT(refusal("argmax", {DType::kF32, {0}}), HasSubstr("empty"));
}

TEST(Ranking, TopKListsTheBestFirst) {
  const auto top = run_all("top_k", kRows, {{"k", std::int64_t{2}}});
  EXPECT_EQ(top[0], Array::of_reals({2, 2}, {5, 2, 6, 4}));
  EXPECT_EQ(top[1], Array::of_integers({2, 2}, {1, 2, 2, 0}));
  EXPECT_EQ(run("top_k", kRows,
                {{"k", std::int64_t{1}}, {"axis", std::int64_t{0}}, {"largest", std::int64_t{0}}}),
            Array::of_reals({1, 3}, {1, 3, 2}));
  EXPECT_THAT(refusal("top_k", kRows.type, {{"k", std::int64_t{4}}}), HasSubstr("k is 4"));
  EXPECT_THAT(refusal("top_k", kRows.type), HasSubstr("'k' is missing"));
}

}  // namespace
}  // namespace plimsoll::ops
