#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/ops/elementwise/dropout_mask.h"
#include "plimsoll/ops/evaluation/evaluate_call.h"

namespace plimsoll::ops {
namespace {

using ir::DType;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

Array row(std::vector<double> values, DType dtype = DType::kF64) {
  const auto count = static_cast<std::int64_t>(values.size());
  return Array::of_reals({count}, std::move(values), dtype);
}

Array whole(std::vector<std::int64_t> values, DType dtype = DType::kI64) {
  const auto count = static_cast<std::int64_t>(values.size());
  return Array::of_integers({count}, std::move(values), dtype);
}

Array run(std::string_view op, const std::vector<Array>& inputs,
          const ir::Attributes& attributes = {}) {
  auto out = evaluate_call(op, inputs, attributes);
  EXPECT_TRUE(out.has_value()) << op << ": " << (out ? "" : out.error().message);
  return out ? out->front() : Array();
}

std::string refusal(std::string_view op, const std::vector<ir::TensorType>& inputs,
                    const ir::Attributes& attributes = {}) {
  const auto out = infer_call(op, inputs, attributes);
  EXPECT_FALSE(out.has_value()) << op;
  return out ? "" : out.error().message;
}

testing::Matcher<std::vector<double>> near(std::vector<double> values) {
  return Pointwise(testing::NanSensitiveDoubleNear(1e-12), values);
}

TEST(Binary, BroadcastsLikeNumpy) {
  const Array column = Array::of_reals({2, 1}, {1, 2});
  EXPECT_EQ(run("mul", {column, row({3, 4, 5})}), Array::of_reals({2, 3}, {3, 4, 5, 6, 8, 10}));
}

TEST(Binary, RoundsToTheDtype) {
  EXPECT_THAT(run("add", {row({1}, DType::kBF16), row({0.001}, DType::kBF16)}).reals,
              ElementsAre(1));
}

TEST(Binary, PowersOfIntegersAreExactAndWrap) {
  EXPECT_THAT(run("pow", {whole({3, -2, 2, 2, -1}), whole({4, 3, -1, 64, -3})}).integers,
              ElementsAre(81, -8, 0, 0, -1));
}

TEST(Binary, ModFollowsTheDivisorOrTheDividend) {
  EXPECT_THAT(run("mod", {whole({7, -7, 7, -7}), whole({3, 3, -3, 0})}).integers,
              ElementsAre(1, 2, -2, 0));
  EXPECT_THAT(run("mod", {row({-7, 7}), row({3, -3})}, {{"fmod", std::int64_t{1}}}).reals,
              near({-1, 1}));
}

TEST(Binary, ExtremesKeepNan) {
  EXPECT_THAT(run("maximum", {row({1, kNan, 2}), row({3, 0, kNan})}).reals, near({3, kNan, kNan}));
}

TEST(Binary, UnsignedNumbersCompareAsUnsigned) {
  const Array huge = whole({-1}, DType::kU64);
  EXPECT_THAT(run("greater", {huge, whole({1}, DType::kU64)}).integers, ElementsAre(1));
  EXPECT_THAT(run("minimum", {huge, whole({1}, DType::kU64)}).integers, ElementsAre(1));
  EXPECT_THAT(run("div", {huge, whole({2}, DType::kU64)}).integers,
              ElementsAre(std::numeric_limits<std::int64_t>::max()));
}

TEST(Binary, RefusesMixedDtypesAndShapesThatDoNotBroadcast) {
  EXPECT_THAT(refusal("pow", {{DType::kF32, {2}}, {DType::kF64, {2}}}),
              HasSubstr("cast one of them"));
  EXPECT_THAT(refusal("less", {{DType::kF32, {2}}, {DType::kF32, {3}}}),
              HasSubstr("do not broadcast"));
}

TEST(Comparison, GivesBools) {
  EXPECT_THAT(run("less_equal", {row({1, 2, kNan}), row({1, 1, 1})}).integers,
              ElementsAre(1, 0, 0));
  EXPECT_EQ(run("equal", {whole({1, 2}), whole({1, 3})}).type.dtype, DType::kBool);
}

TEST(Comparison, LogicTakesOnlyBools) {
  const Array a = whole({0, 0, 1, 1}, DType::kBool);
  const Array b = whole({0, 1, 0, 1}, DType::kBool);
  EXPECT_THAT(run("logical_xor", {a, b}).integers, ElementsAre(0, 1, 1, 0));
  EXPECT_THAT(run("logical_not", {a}).integers, ElementsAre(1, 1, 0, 0));
  EXPECT_THAT(refusal("logical_and", {{DType::kI8, {1}}, {DType::kI8, {1}}}),
              HasSubstr("expects bool"));
}

TEST(Comparison, WhereBroadcastsAllThree) {
  const Array condition = Array::of_integers({2, 1}, {1, 0}, DType::kBool);
  EXPECT_EQ(run("where", {condition, row({1, 2}), Array::of_reals({}, {9})}),
            Array::of_reals({2, 2}, {1, 2, 9, 9}));
}

TEST(Bitwise, ShiftsOutsideTheWidthGiveZero) {
  EXPECT_THAT(run("bit_shift", {whole({1, 1, 3, 1}, DType::kU8), whole({3, 8, 7, 200}, DType::kU8)})
                  .integers,
              ElementsAre(8, 0, 128, 0));
  EXPECT_THAT(run("bit_shift", {whole({-8}, DType::kI32), whole({1}, DType::kI32)},
                  {{"direction", std::string("right")}})
                  .integers,
              ElementsAre(-4));
  EXPECT_THAT(run("bit_not", {whole({0}, DType::kU8)}).integers, ElementsAre(255));
  EXPECT_THAT(refusal("bit_shift", {{DType::kU8, {}}, {DType::kU8, {}}},
                      {{"direction", std::string("up")}}),
              HasSubstr("expects one of left, right"));
  EXPECT_THAT(refusal("bit_and", {{DType::kF32, {}}, {DType::kF32, {}}}),
              HasSubstr("expects an integer"));
}

TEST(Unary, MatchesTheMathLibrary) {
  EXPECT_THAT(run("erf", {row({0.5})}).reals, near({0.52049987781304653768}));
  EXPECT_THAT(run("round", {row({0.5, 1.5, -2.5})}).reals, near({0, 2, -2}));
  EXPECT_THAT(run("softplus", {row({1000, 0, -1000})}).reals, near({1000, std::log(2.0), 0}));
  EXPECT_THAT(run("sigmoid", {row({-1000, 0})}).reals, near({0, 0.5}));
  EXPECT_THAT(run("is_inf", {row({kInf, 1, kNan})}).integers, ElementsAre(1, 0, 0));
  EXPECT_THAT(run("abs", {whole({std::numeric_limits<std::int8_t>::min()}, DType::kI8)}).integers,
              ElementsAre(-128));
  EXPECT_THAT(refusal("exp", {{DType::kI32, {}}}), HasSubstr("expects a float"));
}

TEST(BitCast, KeepsTheBits) {
  Array one = row({1, -2});
  one.type.dtype = DType::kF32;
  EXPECT_THAT(run("bit_cast", {one}, {{"to", std::string("int32")}}).integers,
              ElementsAre(0x3f800000, -0x40000000));
  EXPECT_THAT(run("bit_cast", {whole({-1}, DType::kI8)}, {{"to", std::string("uint8")}}).integers,
              ElementsAre(255));
  EXPECT_THAT(refusal("bit_cast", {{DType::kF32, {}}}, {{"to", std::string("int64")}}),
              HasSubstr("differ in width"));
}

TEST(BitShift, FillsWithTheSignWhereEverythingIsShiftedOut) {
  const ir::Attributes right{{"direction", std::string("right")}};
  EXPECT_THAT(run("bit_shift",
                  {whole({-8, 4, -1, -8}, DType::kI8), whole({8, 9, -1, 1}, DType::kI8)}, right)
                  .integers,
              ElementsAre(-1, 0, -1, -4));
  EXPECT_THAT(run("bit_shift", {whole({64, -1}, DType::kI8), whole({1, 9}, DType::kI8)}).integers,
              ElementsAre(-128, 0));
}

TEST(Cast, SaturatesThenWrapsAndAsksBoolsOnlyForZero) {
  EXPECT_THAT(run("cast", {row({1e300, kNan, -2.7})}, {{"to", std::string("int64")}}).integers,
              ElementsAre(std::numeric_limits<std::int64_t>::max(), 0, -2));
  EXPECT_THAT(run("cast", {row({0.5, 0})}, {{"to", std::string("bool")}}).integers,
              ElementsAre(1, 0));
  EXPECT_THAT(run("cast", {whole({300})}, {{"to", std::string("uint8")}}).integers,
              ElementsAre(44));
  EXPECT_THAT(run("cast", {whole({-1}, DType::kU64)}, {{"to", std::string("fp64")}}).reals,
              ElementsAre(0x1p64));
  EXPECT_THAT(refusal("cast", {{DType::kF32, {}}}, {{"to", std::string("fp31")}}),
              HasSubstr("fp31"));
}

TEST(Activation, MatchesHandComputedValues) {
  const Array x = row({-2, 0, 2});
  EXPECT_THAT(run("relu", {x}).reals, near({0, 0, 2}));
  EXPECT_THAT(run("leaky_relu", {x}, {{"alpha", 0.1}}).reals, near({-0.2, 0, 2}));
  EXPECT_THAT(run("elu", {x}).reals, near({std::exp(-2) - 1, 0, 2}));
  EXPECT_THAT(run("hard_sigmoid", {x}).reals, near({0.1, 0.5, 0.9}));
  EXPECT_THAT(run("hard_swish", {x}).reals, near({-1.0 / 3, 0, 5.0 / 3}));
  EXPECT_THAT(run("shrink", {x}, {{"lambd", 1.5}, {"bias", 0.5}}).reals, near({-1.5, 0, 1.5}));
  EXPECT_THAT(run("thresholded_relu", {x}).reals, near({0, 0, 2}));
  EXPECT_THAT(run("clip", {x}, {{"min", -1.0}}).reals, near({-1, 0, 2}));
  EXPECT_THAT(run("clip", {whole({-5, 5})}, {{"max", 3.0}}).integers, ElementsAre(-5, 3));
  EXPECT_THAT(run("gelu", {row({1})}).reals, near({0.84134474606854293}));
  EXPECT_THAT(run("gelu", {row({1})}, {{"approximate", std::string("tanh")}}).reals,
              near({0.8411919906082768}));
  EXPECT_THAT(run("silu", {row({1})}).reals, near({0.7310585786300049}));
  EXPECT_THAT(run("mish", {row({1})}).reals, near({0.8650983882673103}));
  EXPECT_THAT(run("celu", {row({-1})}, {{"alpha", 2.0}}).reals, near({2 * (std::exp(-0.5) - 1)}));
}

TEST(Activation, RefusesParametersThatMakeNoSense) {
  EXPECT_THAT(refusal("gelu", {{DType::kF32, {}}}, {{"approximate", std::string("erf")}}),
              HasSubstr("none, tanh"));
  EXPECT_THAT(refusal("celu", {{DType::kF32, {}}}, {{"alpha", 0.0}}), HasSubstr("alpha"));
  EXPECT_THAT(refusal("elu", {{DType::kF32, {}}}, {{"alpha", kNan}}), HasSubstr("not finite"));
  EXPECT_THAT(refusal("clip", {{DType::kF32, {}}}, {{"min", kNan}}), HasSubstr("NaN"));
  EXPECT_THAT(refusal("gelu_grad", {{DType::kF32, {2}}, {DType::kF32, {3}}}),
              HasSubstr("one type"));
}

TEST(Dropout, KeepsTheStatedShareAndScalesIt) {
  const std::int64_t n = 100000;
  const Array x = Array::of_reals({n}, std::vector<double>(n, 1.0));
  const Array y = run("dropout", {x, Array::of_integers({}, {7}, DType::kU64)},
                      {{"ratio", 0.25}, {"seed", std::int64_t{3}}});
  std::int64_t kept = 0;
  for (const double value : y.reals) {
    EXPECT_TRUE(value == 0 || value == 1 / 0.75);
    kept += value != 0;
  }
  EXPECT_NEAR(static_cast<double>(kept), 75000, 600);  // four standard deviations
}

TEST(Dropout, AnotherCounterIsAnotherMask) {
  std::int64_t same = 0;
  for (std::uint64_t i = 0; i < 10000; ++i) {
    const bool a = dropout_hash(dropout_key(1, 1), i) >= dropout_threshold(0.5);
    const bool b = dropout_hash(dropout_key(1, 2), i) >= dropout_threshold(0.5);
    same += a == b;
  }
  EXPECT_NEAR(static_cast<double>(same), 5000, 250);
}

TEST(Dropout, RefusesARatioOfOneAndAWrongCounter) {
  const ir::TensorType x{DType::kF32, {2}};
  EXPECT_THAT(refusal("dropout", {x, {DType::kU64, {}}}, {{"ratio", 1.0}}), HasSubstr("ratio"));
  EXPECT_THAT(refusal("dropout", {x, {DType::kI64, {}}}, {{"ratio", 0.5}}), HasSubstr("counter"));
}

TEST(RandomUniform, DrawsEvenlyAndTheSameNumbersForTheSameCounter) {
  const auto drawn = [](std::int64_t counter, std::int64_t seed) {
    return run("random_uniform", {Array::of_integers({}, {counter}, DType::kU64)},
               {{"shape", ir::Ints{100, 1000}},
                {"dtype", std::string("fp32")},
                {"low", -1.0},
                {"high", 3.0},
                {"seed", seed}})
        .reals;
  };
  const std::vector<double> numbers = drawn(7, 3);
  std::array<int, 10> bins{};
  double sum = 0;
  for (const double number : numbers) {
    ASSERT_TRUE(number >= -1 && number < 3) << number;
    ++bins[static_cast<std::size_t>((number + 1) / 0.4)];
    sum += number;
  }
  for (const int count : bins) EXPECT_NEAR(count, 10000, 400);  // four standard deviations
  EXPECT_NEAR(sum / 100000, 1, 0.015);
  EXPECT_EQ(drawn(7, 3), numbers);
  EXPECT_NE(drawn(8, 3), numbers);
  EXPECT_NE(drawn(7, 4), numbers);
}

TEST(RandomUniform, RefusesIntegersAWrongCounterAndNoRange) {
  const ir::TensorType counter{DType::kU64, {}};
  const auto how = [](const char* dtype, double low, double high) {
    return ir::Attributes{
        {"shape", ir::Ints{2}}, {"dtype", std::string(dtype)}, {"low", low}, {"high", high}};
  };
  EXPECT_THAT(refusal("random_uniform", {counter}, how("int64", 0, 1)), HasSubstr("floats"));
  EXPECT_THAT(refusal("random_uniform", {counter}, how("fp32", 1, 0)), HasSubstr("above high"));
  EXPECT_THAT(refusal("random_uniform", {counter}, how("fp32", -1e308, 1e308)),
              HasSubstr("too far"));
  EXPECT_THAT(refusal("random_uniform", {{DType::kI64, {}}}, how("fp32", 0, 1)),
              HasSubstr("counter"));
}

}  // namespace
}  // namespace plimsoll::ops
