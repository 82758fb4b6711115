#include <cmath>

#include <gtest/gtest.h>

#include "plimsoll/kernels/cpu/vectorize.h"
#include "plimsoll/kernels/testing/differential.h"

namespace plimsoll::kernels {
namespace {

using ir::Ints;

double relative_error(double got, double exact) {
  return std::abs(got - exact) / std::max(std::abs(exact), 1e-30);
}

TEST(VectorMath, IsAccurateOverItsRange) {
  double exponential = 0;
  double tangent = 0;
  double error_function = 0;
  for (int i = -8700; i <= 8800; ++i) {
    const float x = static_cast<float>(i) * 0.01F + 0.003F;
    if (x > -87 && x < 88.5F)
      exponential =
          std::max(exponential, relative_error(vector_exp(x), std::exp(static_cast<double>(x))));
    const float small = x * 0.1F;
    tangent = std::max(tangent,
                       relative_error(vector_tanh(small), std::tanh(static_cast<double>(small))));
    error_function = std::max(
        error_function, relative_error(vector_erf(small), std::erf(static_cast<double>(small))));
  }
  EXPECT_LT(exponential, 2.5e-7);
  EXPECT_LT(tangent, 2.5e-7);
  EXPECT_LT(error_function, 2.5e-7);
}

TEST(VectorMath, KeepsItsEnds) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(vector_exp(-infinity), 0);
  EXPECT_EQ(vector_exp(infinity), infinity);
  EXPECT_EQ(vector_exp(0), 1);
  EXPECT_TRUE(std::isnan(vector_exp(std::nanf(""))));
  EXPECT_EQ(vector_tanh(infinity), 1);
  EXPECT_EQ(vector_tanh(-infinity), -1);
  EXPECT_EQ(vector_erf(-infinity), -1);
  EXPECT_EQ(vector_erf(0), 0);
}

TEST(UnaryKernel, AgreesWithTheReference) {
  for (const char* op : {"relu", "gelu", "tanh", "sigmoid", "silu", "exp", "erf", "neg", "abs",
                         "sin", "cos", "leaky_relu"}) {
    expect_agreement({op, {f32({3, 70, 100})}});
    expect_agreement({op, {last({2, 3, 5, 7})}});
    expect_agreement({.op = op, .inputs = {bf16({3, 70})}, .tolerance = 1e-2});
  }
  for (const char* op : {"sqrt", "rsqrt", "reciprocal", "log"})
    expect_agreement({op, {positive(f32({3, 70}))}});
  expect_agreement({"gelu", {f32({700})}, {{"approximate", std::string("tanh")}}});
  expect_agreement({"clip", {f32({700})}, {{"min", -0.5}, {"max", 1.0}}});
}

TEST(GradientOfUnaryKernel, AgreesWithTheReference) {
  for (const char* op : {"relu_grad", "gelu_grad", "tanh_grad", "sigmoid_grad", "silu_grad"}) {
    expect_agreement({op, {f32({3, 70, 100}), f32({3, 70, 100})}});
  }
  expect_agreement({"clip_grad", {f32({700}), f32({700})}, {{"min", -0.5}, {"max", 1.0}}});
  expect_agreement({"leaky_relu_grad", {f32({700}), f32({700})}});
}

TEST(MaskKernel, AgreesWithTheReference) {
  const Tensor bits{{ir::DType::kBit, {3, 70, 101}, {}}, 0, 2};
  expect_agreement({"positive_mask", {f32({3, 70, 101})}});
  expect_agreement({"inside_mask", {f32({40001})}, {{"min", -0.5}, {"max", 1.0}}});
  expect_agreement({"masked", {f32({3, 70, 101}), bits}});
  expect_agreement({"gelu_grad", {f32({700}), f32({700})}, {{"approximate", std::string("tanh")}}});
}

TEST(BinaryKernel, BroadcastsLikeTheReference) {
  for (const char* op : {"add", "sub", "mul", "maximum", "minimum"}) {
    expect_agreement({op, {f32({3, 70, 100}), f32({3, 70, 100})}});
    expect_agreement({op, {f32({3, 70, 100}), f32({})}});
    expect_agreement({op, {f32({}), f32({3, 70})}});
    expect_agreement({op, {f32({2, 8, 5, 7}), f32({8, 1, 1})}});
    expect_agreement({op, {last({2, 8, 5, 7}), f32({8, 1, 1})}});
    expect_agreement({op, {f32({4, 1, 6}), f32({5, 1})}});
    expect_agreement({op, {f32({8, 16}), f32({16})}});
  }
  expect_agreement({"div", {f32({3, 70}), positive(f32({70}))}});
  expect_agreement({"pow", {positive(f32({3, 70})), f32({70})}});
  expect_agreement({"add_relu", {last({2, 8, 5, 7}), last({2, 8, 5, 7})}});
  expect_agreement({.op = "add", .inputs = {bf16({3, 70}), bf16({70})}, .tolerance = 1e-2});
}

TEST(CastKernel, RoundsLikeTheReference) {
  expect_agreement({.op = "cast",
                    .inputs = {f32({3, 70})},
                    .attributes = {{"to", std::string("bf16")}},
                    .tolerance = 0});
  expect_agreement({.op = "cast",
                    .inputs = {bf16({3, 70})},
                    .attributes = {{"to", std::string("fp32")}},
                    .tolerance = 0});
}

TEST(DropoutKernel, DrawsTheMaskOfTheReference) {
  Tensor counter = {{ir::DType::kU64, {}, {}}, 3, 4};
  expect_agreement(
      {"dropout", {f32({5, 7000}), counter}, {{"ratio", 0.3}, {"seed", std::int64_t{77}}}});
}

TEST(RandomUniformKernel, DrawsTheNumbersOfTheReference) {
  const Tensor counter = {{ir::DType::kU64, {}, {}}, 3, 4};
  for (const char* dtype : {"fp32", "bf16"}) {
    expect_agreement({.op = "random_uniform",
                      .inputs = {counter},
                      .attributes = {{"shape", Ints{5, 7000}},
                                     {"dtype", std::string(dtype)},
                                     {"low", -2.0},
                                     {"high", 5.0},
                                     {"seed", std::int64_t{77}}},
                      .tolerance = dtype[0] == 'b' ? 1e-2 : 1e-6});
  }
}

TEST(ReduceKernel, AgreesWithTheReferenceForAnyAxes) {
  for (const char* op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"}) {
    for (const Ints& axes : {Ints{0}, Ints{1}, Ints{2}, Ints{3}, Ints{0, 2, 3}, Ints{2, 3},
                             Ints{0, 1}, Ints{1, 3}, Ints{0, 1, 2, 3}}) {
      for (const std::int64_t keep : {0, 1}) {
        expect_agreement({op, {f32({3, 4, 5, 6})}, {{"axes", axes}, {"keepdims", keep}}});
      }
    }
    expect_agreement({.op = op,
                      .inputs = {last({3, 4, 5, 6})},
                      .attributes = {{"axes", Ints{2, 3}}},
                      .layouts = {ir::Layout{}}});
    expect_agreement({.op = op, .inputs = {f32({300, 260})}, .attributes = {{"axes", Ints{0}}}});
    expect_agreement({.op = op, .inputs = {f32({300, 260})}});
  }
  expect_agreement({"sum_squares", {f32({300, 260})}});
}

TEST(MovementKernel, MovesWhatTheReferenceMoves) {
  expect_agreement({"transpose", {f32({3, 4, 5})}, {{"perm", Ints{2, 0, 1}}}});
  expect_agreement({"transpose", {i64({3, 4, 5}, 9)}, {{"perm", Ints{1, 0, 2}}}});
  expect_agreement({"expand", {f32({4, 1})}, {{"shape", Ints{3, 4, 5}}}});
  expect_agreement({"reshape", {f32({4, 6})}, {{"shape", Ints{3, 8}}}});
  expect_agreement({"slice",
                    {f32({9, 8})},
                    {{"starts", Ints{1, 2}}, {"ends", Ints{8, 8}}, {"steps", Ints{2, 3}}}});
  expect_agreement({"slice_assign",
                    {f32({9, 8}), f32({4, 2})},
                    {{"starts", Ints{1, 2}}, {"ends", Ints{8, 8}}, {"steps", Ints{2, 3}}}});
  expect_agreement({"pad", {f32({4, 6})}, {{"pads", Ints{1, -1, 0, 2}}, {"value", 3.0}}});
  expect_agreement(
      {"concat", {f32({2, 3, 4}), f32({2, 5, 4}), f32({2, 1, 4})}, {{"axis", std::int64_t{1}}}});
  expect_agreement(
      {"concat", {last({2, 3, 4, 4}), last({2, 5, 4, 4})}, {{"axis", std::int64_t{1}}}});
  expect_agreement(
      {"split", {f32({2, 9, 4})}, {{"axis", std::int64_t{1}}, {"sizes", Ints{3, 5, 1}}}});
  expect_agreement(
      {"fill", {}, {{"shape", Ints{300, 70}}, {"dtype", std::string("fp32")}, {"value", 1.5}}});
  expect_agreement(
      {"fill", {}, {{"shape", Ints{3}}, {"dtype", std::string("int64")}, {"value", 7.0}}});
}

TEST(ReorderKernel, GoesBothWaysBetweenLayouts) {
  for (const char* layout : {"@0231", "@0123:16b1", "@0123:16b1:16b0"}) {
    expect_agreement({.op = "reorder",
                      .inputs = {f32({20, 24, 3, 5})},
                      .attributes = {{"layout", std::string(layout)}},
                      .layouts = {ir::parse_layout(layout)},
                      .tolerance = 0});
    Tensor blocked = f32({20, 24, 3, 5});
    blocked.type.layout = *ir::parse_layout(layout);
    expect_agreement({.op = "reorder",
                      .inputs = {blocked},
                      .attributes = {{"layout", std::string()}},
                      .layouts = {ir::Layout{}},
                      .tolerance = 0});
  }
}

TEST(ReorderKernel, BringsPaddedBlocksToChannelsLast) {
  Tensor blocked = f32({3, 24, 7, 5});
  blocked.type.layout = *ir::parse_layout("@0123:16b1");
  expect_agreement({.op = "reorder",
                    .inputs = {blocked},
                    .attributes = {{"layout", std::string("@0231")}},
                    .layouts = {ir::Layout::channels_last(4)},
                    .tolerance = 0});
}

TEST(GatherKernel, AgreesWithTheReference) {
  expect_agreement({"gather", {f32({50, 33}), i64({4, 5}, 50)}});
  expect_agreement({"gather", {f32({6, 50, 3}), i64({7}, 50)}, {{"axis", std::int64_t{1}}}});
  expect_agreement({"gather_grad",
                    {f32({4, 5, 100}), i64({4, 5}, 7)},
                    {{"axis", std::int64_t{0}}, {"shape", Ints{7, 100}}}});
  expect_agreement({"gather_grad",
                    {f32({4, 5, 100}), i64({4, 5}, 7), f32({7, 100})},
                    {{"axis", std::int64_t{0}}, {"shape", Ints{7, 100}}}});
}

TEST(UpdateKernel, AgreesWithTheReference) {
  const Tensor step = {{ir::DType::kI64, {}, {}}, 3, 4};
  expect_agreement({"sgd", {f32({700}), f32({700})}, {{"lr", 0.1}, {"weight_decay", 0.01}}});
  expect_agreement({"sgd", {f32({700}), f32({700}), f32({})}, {{"lr", 0.1}}});
  expect_agreement(
      {"momentum", {f32({700}), f32({700}), f32({700})}, {{"lr", 0.1}, {"weight_decay", 0.01}}});
  for (const char* op : {"adam", "adamw"}) {
    expect_agreement({op,
                      {f32({700}), f32({700}), f32({700}), positive(f32({700})), step},
                      {{"lr", 0.1}, {"weight_decay", 0.01}}});
  }
  // A part of a weight, the first element of which lies anywhere.
  for (const std::int64_t first : {0, 64, 697}) {
    const ir::Shape part{std::min<std::int64_t>(600, 700 - first)};
    const ir::Attributes how{{"lr", 0.1}, {"weight_decay", 0.01}, {"first", first}};
    expect_agreement({"momentum", {f32({7, 100}), f32({7, 100}), f32(part)}, how});
    for (const char* op : {"adam", "adamw"}) {
      expect_agreement(
          {op, {f32({7, 100}), f32({7, 100}), f32(part), positive(f32(part)), step}, how});
    }
  }
  expect_agreement({"accumulate", {f32({700}), f32({700})}});
  // Of bf16 in pieces: the last one is shorter.
  const ir::Shape pieces{3, 181'001};
  expect_agreement(
      {.op = "adamw",
       .inputs = {bf16(pieces), bf16(pieces), bf16(pieces), positive(bf16(pieces)), step},
       .attributes = {{"lr", 0.1}, {"weight_decay", 0.01}},
       .tolerance = 2e-2});
  expect_agreement({.op = "sgd",
                    .inputs = {bf16(pieces), bf16(pieces), bf16({})},
                    .attributes = {{"lr", 0.1}},
                    .tolerance = 2e-2});
  expect_agreement({"increment", {i64({}, 5)}});
}

}  // namespace
}  // namespace plimsoll::kernels
