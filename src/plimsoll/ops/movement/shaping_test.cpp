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

Array count_up(const ir::Shape& shape) {
  Array out(ir::TensorType{DType::kI64, shape, {}});
  for (std::size_t i = 0; i < out.integers.size(); ++i)
    out.integers[i] = static_cast<std::int64_t>(i);
  return out;
}

std::vector<Array> run_all(std::string_view op, const std::vector<Array>& inputs,
                           const ir::Attributes& attributes) {
  auto out = evaluate_call(op, inputs, attributes);
  EXPECT_TRUE(out.has_value()) << op << ": " << (out ? "" : out.error().message);
  return out ? *out : std::vector<Array>(4);
}

Array run(std::string_view op, const std::vector<Array>& inputs, const ir::Attributes& attributes) {
  return run_all(op, inputs, attributes).front();
}

std::string refusal(std::string_view op, const std::vector<ir::Shape>& shapes,
                    const ir::Attributes& attributes) {
  std::vector<ir::TensorType> types;
  for (const ir::Shape& shape : shapes) types.push_back({DType::kF32, shape, {}});
  const auto out = infer_call(op, types, attributes);
  EXPECT_FALSE(out.has_value()) << op;
  return out ? "" : out.error().message;
}

TEST(Fill, TakesIntegersExactly) {
  EXPECT_THAT(
      run("fill", {}, {{"shape", Ints{2}}, {"dtype", std::string("int64")}, {"value", kHuge}})
          .integers,
      ElementsAre(kHuge, kHuge));
  EXPECT_THAT(
      run("fill", {}, {{"shape", Ints{}}, {"dtype", std::string("fp16")}, {"value", 0.1}}).reals,
      ElementsAre(round_to(DType::kF16, 0.1)));
}

TEST(Fill, RefusesShapesThatAreNone) {
  const std::string dtype = "fp32";
  EXPECT_THAT(refusal("fill", {}, {{"dtype", dtype}}), HasSubstr("'shape' is missing"));
  EXPECT_THAT(refusal("fill", {}, {{"dtype", dtype}, {"shape", Ints{-1}}}), HasSubstr("negative"));
  EXPECT_THAT(refusal("fill", {}, {{"dtype", dtype}, {"shape", Ints{kHuge, 4}}}),
              HasSubstr("64 bits"));
  EXPECT_THAT(refusal("fill", {}, {{"dtype", dtype}, {"shape", Ints(9, 1)}}), HasSubstr("rank"));
  EXPECT_THAT(refusal("fill", {}, {{"dtype", dtype}, {"shape", std::int64_t{3}}}),
              HasSubstr("must be a list of integers"));
}

TEST(Iota, CountsAlongOneAxis) {
  const ir::Attributes how{{"shape", Ints{2, 3}},
                           {"dtype", std::string("int32")},
                           {"axis", std::int64_t{-1}},
                           {"start", std::int64_t{5}},
                           {"step", std::int64_t{-2}}};
  EXPECT_THAT(run("iota", {}, how).integers, ElementsAre(5, 3, 1, 5, 3, 1));
  EXPECT_THAT(refusal("iota", {}, {{"shape", Ints{}}, {"dtype", std::string("int32")}}),
              HasSubstr("axis"));
}

TEST(Transpose, PermutesAxes) {
  const Array y = run("transpose", {count_up({2, 3})}, {{"perm", Ints{1, 0}}});
  EXPECT_EQ(y, Array::of_integers({3, 2}, {0, 3, 1, 4, 2, 5}));
  EXPECT_THAT(refusal("transpose", {{2, 3}}, {{"perm", Ints{0, 0}}}), HasSubstr("permutation"));
  EXPECT_THAT(refusal("transpose", {{2, 3}}, {{"perm", Ints{0, 7}}}), HasSubstr("permutation"));
  EXPECT_THAT(refusal("transpose", {{2, 3}}, {{"perm", Ints{0}}}),
              HasSubstr("has 1 entries, expects 2"));
}

TEST(Reshape, KeepsTheNumberOfElements) {
  EXPECT_EQ(run("reshape", {count_up({2, 3})}, {{"shape", Ints{3, 2}}}).integers,
            count_up({6}).integers);
  EXPECT_THAT(refusal("reshape", {{2, 3}}, {{"shape", Ints{7}}}), HasSubstr("6 elements"));
  EXPECT_THAT(refusal("reshape", {{2, 3}}, {{"shape", Ints{-1, 6}}}), HasSubstr("negative"));
}

TEST(Expand, Broadcasts) {
  EXPECT_THAT(run("expand", {count_up({2, 1})}, {{"shape", Ints{2, 2}}}).integers,
              ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(refusal("expand", {{2, 3}}, {{"shape", Ints{3}}}), HasSubstr("does not broadcast"));
}

TEST(Tile, RepeatsTheWhole) {
  EXPECT_THAT(run("tile", {count_up({2})}, {{"repeats", Ints{2}}}).integers,
              ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(refusal("tile", {{4}}, {{"repeats", Ints{kHuge}}}), HasSubstr("cannot repeat"));
  EXPECT_THAT(refusal("tile", {{4}}, {{"repeats", Ints{-1}}}), HasSubstr("cannot repeat"));
}

TEST(Triangle, ZeroesTheOtherSide) {
  EXPECT_THAT(run("triangle", {count_up({2, 3})}, {}).integers, ElementsAre(0, 0, 0, 3, 4, 0));
  EXPECT_THAT(run("triangle", {count_up({2, 3})},
                  {{"upper", std::int64_t{1}}, {"diagonal", std::int64_t{1}}})
                  .integers,
              ElementsAre(0, 1, 2, 0, 0, 5));
  EXPECT_THAT(refusal("triangle", {{3}}, {}), HasSubstr("last two axes"));
}

TEST(DepthToSpace, OrdersAsOnnxDoes) {
  const Array x = count_up({1, 4, 1, 2});  // channels 0..3, two pixels each
  const ir::Attributes block{{"block", std::int64_t{2}}};
  const Array y = run("depth_to_space", {x}, block);
  EXPECT_EQ(y, Array::of_integers({1, 1, 2, 4}, {0, 2, 1, 3, 4, 6, 5, 7}));
  EXPECT_EQ(run("space_to_depth", {y}, block), x);
  EXPECT_THAT(refusal("depth_to_space", {{1, 6, 2, 2}}, block), HasSubstr("do not fill blocks"));
  EXPECT_THAT(refusal("depth_to_space", {{1, 4, 2, 2}}, {{"block", kHuge}}), HasSubstr("blocks"));
  EXPECT_THAT(refusal("space_to_depth", {{1, 4, 3, 2}}, block), HasSubstr("not made of blocks"));
  EXPECT_THAT(refusal("space_to_depth", {{1, 4, 0, 0}}, {{"block", kHuge}}), HasSubstr("64 bits"));
  EXPECT_THAT(refusal("space_to_depth", {{4, 2, 2}}, block), HasSubstr("[N,C,H,W]"));
}

TEST(Reorder, RefusesALayoutThatDoesNotFit) {
  EXPECT_THAT(refusal("reorder", {{1, 2, 3}}, {{"layout", std::string("@0231")}}),
              HasSubstr("does not fit"));
  EXPECT_THAT(refusal("reorder", {{1, 2, 3}}, {{"layout", std::string("x")}}),
              HasSubstr("does not fit"));
}

ir::Attributes range(Ints starts, Ints ends, Ints steps) {
  return {{"starts", starts}, {"ends", ends}, {"steps", steps}};
}

TEST(Slice, StepsBothWays) {
  EXPECT_THAT(run("slice", {count_up({6})}, range({1}, {6}, {2})).integers, ElementsAre(1, 3, 5));
  EXPECT_THAT(run("slice", {count_up({6})}, range({5}, {-1}, {-2})).integers, ElementsAre(5, 3, 1));
  EXPECT_THAT(run("slice", {count_up({6})}, range({2}, {3}, {kHuge})).integers, ElementsAre(2));
  EXPECT_THAT(run("slice", {count_up({6})}, range({4}, {2}, {1})).integers, ElementsAre());
}

TEST(Slice, RefusesRangesOutside) {
  EXPECT_THAT(refusal("slice", {{6}}, range({0}, {7}, {1})), HasSubstr("outside an extent of 6"));
  EXPECT_THAT(refusal("slice", {{6}}, range({-1}, {6}, {1})), HasSubstr("outside"));
  EXPECT_THAT(refusal("slice", {{6}}, range({6}, {0}, {-1})), HasSubstr("outside"));
  EXPECT_THAT(refusal("slice", {{6}}, range({0}, {6}, {0})), HasSubstr("step of 0"));
  EXPECT_THAT(refusal("slice", {{6}}, range({0}, {6}, {kLowest})), HasSubstr("makes no sense"));
  EXPECT_THAT(refusal("slice", {{6}}, range({0, 0}, {6}, {1})), HasSubstr("entries"));
}

TEST(SliceAssign, ReplacesTheSlice) {
  const Array update = Array::of_integers({2}, {8, 9});
  EXPECT_THAT(run("slice_assign", {count_up({4}), update}, range({3}, {0}, {-2})).integers,
              ElementsAre(0, 9, 2, 8));
  EXPECT_THAT(refusal("slice_assign", {{4}, {3}}, range({0}, {2}, {1})),
              HasSubstr("the update is"));
}

TEST(Concat, JoinsAndSplitUndoesIt) {
  const Array a = Array::of_integers({2, 1}, {1, 2});
  const Array b = Array::of_integers({2, 2}, {3, 4, 5, 6});
  const Array whole = run("concat", {a, b}, {{"axis", std::int64_t{1}}});
  EXPECT_EQ(whole, Array::of_integers({2, 3}, {1, 3, 4, 2, 5, 6}));
  const auto parts = run_all("split", {whole}, {{"axis", std::int64_t{-1}}, {"sizes", Ints{1, 2}}});
  EXPECT_EQ(parts, (std::vector<Array>{a, b}));
}

TEST(Concat, RefusesWhatDoesNotFit) {
  const ir::Attributes axis{{"axis", std::int64_t{0}}};
  EXPECT_THAT(refusal("concat", {{2, 1}, {2, 2}}, axis), HasSubstr("more than axis 0"));
  EXPECT_THAT(refusal("concat", {{2, 1}, {2}}, axis), HasSubstr("more than axis 0"));
  EXPECT_THAT(refusal("concat", {{kHuge / 2}, {kHuge / 2}, {kHuge / 2}}, axis),
              HasSubstr("axis 0"));
  EXPECT_THAT(refusal("concat", {{2}}, {{"axis", std::int64_t{1}}}),
              HasSubstr("axis 1 is outside"));
  EXPECT_THAT(refusal("split", {{4}}, {{"axis", std::int64_t{0}}, {"sizes", Ints{3, 3}}}),
              HasSubstr("add up"));
  EXPECT_THAT(refusal("split", {{4}}, {{"axis", std::int64_t{0}}, {"sizes", Ints{-1, 5}}}),
              HasSubstr("add up"));
  EXPECT_THAT(refusal("split", {{4}}, {{"axis", std::int64_t{0}}, {"sizes", Ints{}}}),
              HasSubstr("empty"));
}

TEST(Pad, HasFourModes) {
  const Array x = Array::of_integers({3}, {1, 2, 3});
  const Ints pads{2, 2};
  EXPECT_THAT(run("pad", {x}, {{"pads", pads}}).integers, ElementsAre(0, 0, 1, 2, 3, 0, 0));
  EXPECT_THAT(run("pad", {x}, {{"pads", pads}, {"mode", std::string("edge")}}).integers,
              ElementsAre(1, 1, 1, 2, 3, 3, 3));
  EXPECT_THAT(run("pad", {x}, {{"pads", pads}, {"mode", std::string("reflect")}}).integers,
              ElementsAre(3, 2, 1, 2, 3, 2, 1));
  EXPECT_THAT(run("pad", {x}, {{"pads", pads}, {"mode", std::string("wrap")}}).integers,
              ElementsAre(2, 3, 1, 2, 3, 1, 2));
  EXPECT_THAT(run("pad", {x}, {{"pads", Ints{-1, 1}}, {"value", 7.0}}).integers,
              ElementsAre(2, 3, 7));
}

TEST(Pad, RefusesAmountsThatMakeNoTensor) {
  EXPECT_THAT(refusal("pad", {{3}}, {{"pads", Ints{-2, -2}}}), HasSubstr("cannot pad"));
  EXPECT_THAT(refusal("pad", {{3}}, {{"pads", Ints{kLowest, kHuge}}}), HasSubstr("cannot pad"));
  EXPECT_THAT(refusal("pad", {{0}}, {{"pads", Ints{1, 0}}, {"mode", std::string("edge")}}),
              HasSubstr("nothing to edge"));
  EXPECT_THAT(refusal("pad", {{3}}, {{"pads", Ints{1}}}), HasSubstr("expects 2"));
  EXPECT_THAT(refusal("pad", {{3}}, {{"pads", Ints{1, 1}}, {"mode", std::string("mirror")}}),
              HasSubstr("expects one of"));
}

TEST(Resize, InterpolatesAndTakesTheNearest) {
  const Array x = Array::of_reals({2}, {0, 4});
  const std::string linear = "linear";
  EXPECT_THAT(run("resize", {x}, {{"shape", Ints{4}}, {"mode", linear}}).reals,
              ElementsAre(0, 1, 3, 4));
  EXPECT_THAT(
      run("resize", {x},
          {{"shape", Ints{3}}, {"mode", linear}, {"coordinates", std::string("align_corners")}})
          .reals,
      ElementsAre(0, 2, 4));
  EXPECT_THAT(run("resize", {x},
                  {{"shape", Ints{4}},
                   {"coordinates", std::string("asymmetric")},
                   {"rounding", std::string("floor")}})
                  .reals,
              ElementsAre(0, 0, 4, 4));
  EXPECT_THAT(refusal("resize", {{2}}, {{"shape", Ints{2, 2}}}), HasSubstr("ranks differ"));
  EXPECT_THAT(refusal("resize", {{2}}, {{"shape", Ints{0}}}), HasSubstr("empty"));
  EXPECT_THAT(refusal("resize", {{2}}, {{"shape", Ints{4}}, {"mode", std::string("cubic")}}),
              HasSubstr("nearest, linear"));
}

}  // namespace
}  // namespace plimsoll::ops
