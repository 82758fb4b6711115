// Reference numbers: tools/references/nn_operators.py.
#include "plimsoll/ops/testing/wave.h"

namespace plimsoll::ops {
namespace {

TensorType f32(const ir::Shape& shape) {
  return {ir::DType::kF32, shape, {}};
}

const ir::Attributes kMax{{"kernel", ir::Ints{3, 2}},
                          {"strides", ir::Ints{2, 2}},
                          {"pads", ir::Ints{1, 0, 1, 0}},
                          {"dilations", ir::Ints{2, 1}},
                          {"ceil_mode", std::int64_t{1}}};
const ir::Attributes kAverage{{"kernel", ir::Ints{3, 2}},
                              {"strides", ir::Ints{2, 3}},
                              {"pads", ir::Ints{1, 1, 1, 1}},
                              {"ceil_mode", std::int64_t{1}}};

ir::Attributes with(ir::Attributes attributes, std::string_view name, ir::Attribute value) {
  attributes.set(name, std::move(value));
  return attributes;
}

Array x() {
  return wave({2, 3, 7, 6}, 0.0);
}
const ir::Ints kShape{2, 3, 7, 6};

TEST(MaxPool, AgreesWithPyTorch) {
  const auto made = run_operator("max_pool", {x()}, kMax);
  EXPECT_EQ(made[0].type.shape, (ir::Shape{2, 3, 3, 3}));
  EXPECT_EQ(made[1].type.dtype, ir::DType::kU8);
  expect_fingerprint(made[0], {-0.0996208605433028, 0.530975051841411});
  const Array dx = run_operator("max_pool_grad", {wave(made[0].type.shape, 0.7), made[1]},
                                with(kMax, "shape", kShape))[0];
  expect_fingerprint(dx, {0.147993635992535, -0.900230217109853});
}

TEST(MaxPool, SelectPicksTheWinners) {
  const auto made = run_operator("max_pool", {x()}, kMax);
  EXPECT_EQ(run_operator("max_pool_select", {x(), made[1]}, kMax)[0], made[0]);
}

TEST(MaxPool, RemembersWherePaddingNeverWins) {
  const Array in = Array::of_reals({1, 1, 3}, {-5, -7, -6});
  const auto made =
      run_operator("max_pool", {in},
                   {{"kernel", ir::Ints{2}}, {"strides", ir::Ints{2}}, {"pads", ir::Ints{1, 0}}});
  EXPECT_EQ(made[0].reals, (std::vector<double>{-5, -6}));
  EXPECT_EQ(made[1].integers, (std::vector<std::int64_t>{1, 1}));
}

TEST(MaxPool, ALargeWindowHasWiderIndices) {
  Builder builder("one");
  const auto out = builder.call("max_pool", {builder.input("x", f32({1, 1, 17, 17}))},
                                {{"kernel", ir::Ints{17, 17}}});
  EXPECT_EQ(out[1].dtype(), ir::DType::kI32);
}

TEST(MaxPool, AHostileIndexReadsNothingOutside) {
  Array index(TensorType{ir::DType::kU8, {1, 1, 2}, {}});
  index.integers = {255, 0};
  const Array dx = run_operator(
      "max_pool_grad", {wave({1, 1, 2}, 0.7), index},
      {{"kernel", ir::Ints{2}}, {"pads", ir::Ints{1, 0}}, {"shape", ir::Ints{1, 1, 2}}})[0];
  EXPECT_EQ(dx.reals[1], 0);
}

TEST(AvgPool, AgreesWithPyTorch) {
  expect_fingerprint(run_operator("avg_pool", {x()}, kAverage)[0],
                     {-0.051242887226547, -0.0484233689225933});
  const Array dy = wave({2, 3, 4, 3}, 0.7);
  expect_fingerprint(run_operator("avg_pool_grad", {dy}, with(kAverage, "shape", kShape))[0],
                     {-0.101802327821482, 0.02652820903692});
}

TEST(AvgPool, CountsPaddingWhenAsked) {
  const auto padded = with(kAverage, "count_include_pad", std::int64_t{1});
  expect_fingerprint(run_operator("avg_pool", {x()}, padded)[0],
                     {-0.0115805689108121, -0.0487932005811137});
  const Array dy = wave({2, 3, 4, 3}, 0.7);
  expect_fingerprint(run_operator("avg_pool_grad", {dy}, with(padded, "shape", kShape))[0],
                     {-0.0538088380380616, -0.0100085378950809});
}

TEST(Pool, RefusesWhatDoesNotFit) {
  const TensorType in = f32({2, 3, 7, 6});
  const ir::Attributes plain{{"kernel", ir::Ints{2, 2}}};
  for (const std::string_view op : {"max_pool", "avg_pool"}) {
    EXPECT_EQ(refusal(op, {in}, plain), "");
    EXPECT_NE(refusal(op, {in}), "");
    EXPECT_NE(refusal(op, {in}, {{"kernel", ir::Ints{2}}}), "");
    EXPECT_NE(refusal(op, {in}, {{"kernel", ir::Ints{8, 2}}}), "");
    EXPECT_NE(refusal(op, {f32({2, 3, 0, 6})}, plain), "");
    EXPECT_NE(refusal(op, {in}, with(plain, "pads", ir::Ints{2, 0, 0, 0})), "");
    for (const std::int64_t bad : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 62}) {
      EXPECT_NE(refusal(op, {in}, {{"kernel", ir::Ints{bad, 2}}}), "") << bad;
      EXPECT_NE(refusal(op, {in}, with(plain, "strides", ir::Ints{bad, 1})), "") << bad;
      EXPECT_NE(refusal(op, {in}, with(plain, "dilations", ir::Ints{bad, 1})), "") << bad;
    }
  }
  EXPECT_NE(refusal("max_pool_grad", {in, in}, plain), "");
  EXPECT_NE(refusal("avg_pool_grad", {in}, with(plain, "shape", ir::Ints{2, 3, 7, 6})), "");
}

}  // namespace
}  // namespace plimsoll::ops
