#include <gtest/gtest.h>

#include "plimsoll/kernels/testing/differential.h"

namespace plimsoll::kernels {
namespace {

using ir::Ints;
const ir::Attributes kRelu = {{"activation", std::string("relu")}};

Tensor shaped(bool channels_last, const ir::Shape& shape) {
  return channels_last ? last(shape) : f32(shape);
}

TEST(BatchNormKernel, AgreesWithTheReferenceInBothLayouts) {
  for (const bool is_last : {false, true}) {
    for (const ir::Attributes& attributes : {ir::Attributes{}, kRelu}) {
      expect_agreement(
          {"batch_norm", {shaped(is_last, {3, 20, 5, 7}), f32({20}), f32({20})}, attributes});
      expect_agreement({"batch_norm_grad",
                        {shaped(is_last, {3, 20, 5, 7}), shaped(is_last, {3, 20, 5, 7}), f32({20}),
                         f32({20}), f32({20}), positive(f32({20}))},
                        attributes});
      expect_agreement(
          {"batch_norm_inference",
           {shaped(is_last, {3, 20, 5, 7}), f32({20}), f32({20}), f32({20}), positive(f32({20}))},
           attributes});
    }
  }
  expect_agreement({"batch_norm", {f32({40, 20}), f32({20}), f32({20})}});
  expect_agreement({"batch_norm_update",
                    {f32({20}), f32({20}), f32({20}), positive(f32({20}))},
                    {{"count", std::int64_t{105}}}});
}

TEST(BatchNormKernel, KeepsSmallVariancesOfLargeMeans) {
  for (const bool is_last : {false, true}) {
    Tensor x = shaped(is_last, {4, 16, 32, 32});
    x.low = 1000;
    x.high = 1001;
    expect_agreement({.op = "batch_norm", .inputs = {x, f32({16}), f32({16})}, .tolerance = 2e-4});
  }
}

TEST(LayerNormKernel, AgreesWithTheReference) {
  expect_agreement({"layer_norm", {f32({4, 5, 96}), f32({96}), f32({96})}});
  expect_agreement(
      {"layer_norm", {f32({4, 6, 10}), f32({6, 10}), none()}, {{"axis", std::int64_t{1}}}});
  expect_agreement({"layer_norm_grad",
                    {f32({40, 96}), f32({40, 96}), f32({96}), f32({40}), positive(f32({40}))}});
}

TEST(WidenedKernel, GivesBfloat16ToKernelsOfFloat) {
  const Tensor gamma = bf16({96});
  expect_agreement(
      {.op = "layer_norm", .inputs = {bf16({40, 96}), gamma, gamma}, .tolerance = 1e-2});
  expect_agreement({.op = "softmax", .inputs = {bf16({30, 77})}, .tolerance = 1e-2});
  expect_agreement(
      {.op = "cross_entropy", .inputs = {bf16({30, 7}), i64({30}, 7)}, .tolerance = 1e-2});
  expect_agreement({.op = "gather_grad",
                    .inputs = {bf16({4, 5, 100}), i64({4, 5}, 7)},
                    .attributes = {{"axis", std::int64_t{0}}, {"shape", Ints{7, 100}}},
                    .tolerance = 1e-2});
  expect_agreement({.op = "attention_qkv",
                    .inputs = {bf16({1, 70, 96})},
                    .attributes = {{"heads", std::int64_t{2}}},
                    .tolerance = 1e-2});
}

TEST(SoftmaxKernel, AgreesWithTheReference) {
  for (const char* op : {"softmax", "log_softmax"}) expect_agreement({op, {f32({30, 77})}});
  for (const char* op : {"softmax_grad", "log_softmax_grad"})
    expect_agreement({op, {f32({30, 77}), f32({30, 77})}});
}

TEST(CrossEntropyKernel, AgreesWithTheReference) {
  expect_agreement({"cross_entropy", {f32({6, 5, 77}), i64({6, 5}, 77)}});
  expect_agreement(
      {"cross_entropy", {f32({30, 7}), i64({30}, 7)}, {{"ignore_index", std::int64_t{3}}}});
  expect_agreement({"cross_entropy_grad",
                    {f32({}), f32({30, 7}), i64({30}, 7), f32({30})},
                    {{"ignore_index", std::int64_t{3}}}});
}

TEST(PoolingKernel, AgreesWithTheReferenceInBothLayouts) {
  for (const bool is_last : {false, true}) {
    const ir::Attributes window = {
        {"kernel", Ints{3, 3}}, {"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}};
    expect_agreement({"max_pool", {shaped(is_last, {2, 20, 9, 11})}, window});
    expect_agreement({"avg_pool", {shaped(is_last, {2, 20, 9, 11})}, window});
    ir::Attributes padded = window;
    padded.set("count_include_pad", std::int64_t{1});
    padded.set("ceil_mode", std::int64_t{1});
    expect_agreement({"avg_pool", {shaped(is_last, {2, 20, 8, 10})}, padded});
    ir::Attributes back = window;
    back.set("shape", Ints{2, 20, 9, 11});
    Tensor index = shaped(is_last, {2, 20, 5, 6});
    index.type.dtype = ir::DType::kU8;
    index.low = 4;  // the centre is never padding
    index.high = 5;
    expect_agreement({"max_pool_grad", {shaped(is_last, {2, 20, 5, 6}), index}, back});
    expect_agreement({"avg_pool_grad", {shaped(is_last, {2, 20, 5, 6})}, back});
  }
  expect_agreement({"max_pool", {f32({2, 3, 20})}, {{"kernel", Ints{2}}, {"strides", Ints{2}}}});
  expect_agreement(
      {"max_pool", {last({2, 24, 9, 9})}, {{"kernel", Ints{4, 5}}, {"pads", Ints{2, 2, 1, 2}}}});
  expect_agreement(
      {"max_pool", {last({1, 3, 6, 7})}, {{"kernel", Ints{1, 1}}, {"strides", Ints{2, 3}}}});
}

}  // namespace
}  // namespace plimsoll::kernels
