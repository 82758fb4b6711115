#include <gtest/gtest.h>

#include "plimsoll/kernels/testing/differential.h"

namespace plimsoll::kernels {
namespace {

using ir::Ints;

TEST(MatmulKernel, AgreesWithTheReference) {
  expect_agreement({"matmul", {f32({5, 7}), f32({7, 3})}});
  expect_agreement({"matmul", {f32({64, 96}), f32({80, 96})}, {{"trans_b", std::int64_t{1}}}});
  expect_agreement({"matmul", {f32({33, 17}), f32({33, 65})}, {{"trans_a", std::int64_t{1}}}});
  expect_agreement({"matmul",
                    {f32({33, 17}), f32({65, 33})},
                    {{"trans_a", std::int64_t{1}}, {"trans_b", std::int64_t{1}}}});
  expect_agreement({"matmul", {f32({2, 3, 8, 16}), f32({2, 3, 16, 9})}});
  expect_agreement({"matmul", {f32({2, 3, 8, 16}), f32({16, 9})}});
  expect_agreement({"matmul", {f32({2, 1, 8, 16}), f32({3, 16, 9})}});
}

TEST(MatmulKernel, TakesBfloat16) {
  expect_agreement({.op = "matmul", .inputs = {bf16({32, 64}), bf16({64, 48})}, .tolerance = 1e-2});
}

TEST(LinearKernel, AgreesWithTheReference) {
  expect_agreement({"linear", {f32({2, 5, 24}), f32({24, 36}), f32({36})}});
  expect_agreement(
      {"linear", {f32({10, 24}), f32({36, 24}), f32({36})}, {{"trans_w", std::int64_t{1}}}});
  expect_agreement({"linear", {f32({10, 24}), f32({24, 36})}});
}

TEST(LinearGradWeightKernel, AgreesWithTheReference) {
  for (const std::int64_t transposed : {0, 1}) {
    expect_agreement(
        {"linear_grad_weight", {f32({2, 50, 24}), f32({2, 50, 36})}, {{"trans_w", transposed}}});
    expect_agreement({"linear_grad_weight",
                      {f32({700, 24}), f32({700, 36})},
                      {{"trans_w", transposed}, {"bias", std::int64_t{1}}}});
  }
}

const Ints kPads1 = {1, 1, 1, 1};

TEST(ConvolutionKernel, AgreesWithTheReference) {
  expect_agreement({"conv",
                    {f32({2, 3, 9, 9}), f32({8, 3, 3, 3}), f32({8})},
                    {{"pads", kPads1}, {"strides", Ints{2, 2}}}});
  expect_agreement({"conv", {last({2, 16, 7, 7}), f32({32, 16, 1, 1})}});
  expect_agreement({"conv",
                    {last({2, 16, 7, 7}), f32({16, 16, 3, 3})},
                    {{"pads", kPads1}, {"dilations", Ints{2, 2}}}});
  expect_agreement({"conv",
                    {f32({2, 16, 7, 7}), f32({16, 4, 3, 3})},
                    {{"pads", kPads1}, {"group", std::int64_t{4}}}});
  expect_agreement({"conv",
                    {last({2, 16, 7, 7}), f32({16, 1, 3, 3})},
                    {{"pads", kPads1}, {"group", std::int64_t{16}}}});
  expect_agreement({"conv", {f32({2, 4, 20}), f32({6, 4, 3}), f32({6})}, {{"pads", Ints{1, 1}}}});
}

TEST(ConvolutionKernel, EndsInAReluWhereAsked) {
  const ir::Attributes relu{{"activation", std::string("relu")}};
  expect_agreement({"conv", {last({2, 16, 7, 7}), f32({32, 16, 1, 1}), f32({32})}, relu});
  expect_agreement({"conv",
                    {f32({1, 6, 9, 9}), f32({10, 3, 1, 1}), f32({10})},
                    {{"activation", std::string("relu")}, {"group", std::int64_t{2}}}});
}

// Blocks of 16 channels, the last one padded: as behind a stem of 24 filters.
TEST(ConvolutionKernel, WritesPaddedBlocks) {
  expect_agreement(
      {"conv",
       {f32({2, 3, 9, 9}), f32({24, 3, 3, 3}), f32({24})},
       {{"pads", kPads1}, {"strides", Ints{2, 2}}, {"activation", std::string("relu")}},
       {*ir::parse_layout("@0123:16b1")}});
}

TEST(ConvolutionKernel, TakesBlockedWeights) {
  Tensor blocked = f32({32, 16, 3, 3});
  blocked.type.layout = *ir::parse_layout("@0123:16b1:16b0");
  expect_agreement({"conv", {last({2, 16, 7, 7}), blocked}, {{"pads", kPads1}}});
}

TEST(ConvolutionGradients, AgreeWithTheReference) {
  for (const Tensor& dy : {f32({2, 16, 7, 7}), last({2, 16, 7, 7})}) {
    const bool is_last = !dy.type.layout.is_row_major();
    const Tensor x = is_last ? last({2, 8, 7, 7}) : f32({2, 8, 7, 7});
    expect_agreement({"conv_grad_input",
                      {dy, f32({16, 8, 3, 3})},
                      {{"pads", kPads1}, {"shape", Ints{2, 8, 7, 7}}}});
    expect_agreement(
        {.op = "conv_grad_weight",
         .inputs = {x, dy},
         .attributes = {{"pads", kPads1}, {"shape", Ints{16, 8, 3, 3}}, {"bias", std::int64_t{1}}},
         .layouts = {ir::Layout{}},
         .same_bits_on_any_threads = false});
  }
  expect_agreement({"conv_grad_input",
                    {f32({2, 8, 4, 4}), f32({8, 3, 3, 3})},
                    {{"pads", kPads1}, {"strides", Ints{2, 2}}, {"shape", Ints{2, 3, 8, 8}}}});
}

// Weights of groups as the layout pass lays them: filters last, or in blocks that fill a group.
TEST(GroupedConvolution, AgreesWithTheReferenceInItsLayouts) {
  ir::Layout filters_last;
  filters_last.rank = 4;
  filters_last.order = {2, 3, 1, 0};
  ir::Layout blocked;
  blocked.rank = 4;
  blocked.order = {0, 1, 2, 3};
  blocked.block_count = 2;
  blocked.blocks[0] = {1, 16};
  blocked.blocks[1] = {0, 16};
  expect_agreement({"conv",
                    {last({2, 12, 6, 6}), {{ir::DType::kF32, {20, 3, 3, 3}, filters_last}}},
                    {{"pads", kPads1}, {"group", std::int64_t{4}}},
                    {ir::Layout::channels_last(4)}});
  expect_agreement({"conv",
                    {last({2, 64, 6, 6}), {{ir::DType::kF32, {96, 32, 3, 3}, blocked}}},
                    {{"pads", kPads1}, {"group", std::int64_t{2}}},
                    {ir::Layout::channels_last(4)}});
}

TEST(ConvolutionTranspose, AgreesWithTheReference) {
  expect_agreement({"conv_transpose",
                    {f32({2, 8, 5, 5}), f32({8, 4, 2, 2}), f32({4})},
                    {{"strides", Ints{2, 2}}}});
}

TEST(AttentionKernel, AgreesWithTheReference) {
  const std::int64_t heads = 2;
  for (const std::int64_t causal : {0, 1}) {
    expect_agreement(
        {"attention_qkv", {f32({2, 70, 3 * 32})}, {{"heads", heads}, {"causal", causal}}});
    expect_agreement({"attention",
                      {f32({1, 40, 32}), f32({1, 70, 32}), f32({1, 70, 32})},
                      {{"heads", heads}, {"causal", causal}}});
    expect_agreement({"attention",
                      {f32({1, 70, 32}), f32({1, 40, 16}), f32({1, 40, 24})},
                      {{"heads", heads}, {"kv_heads", std::int64_t{1}}, {"causal", causal}}});
  }
  expect_agreement({"attention",
                    {f32({2, 9, 16}), f32({2, 11, 16}), f32({2, 11, 16}), f32({2, 1, 1, 11})},
                    {{"heads", heads}}});
}

TEST(AttentionGradKernel, AgreesWithTheReference) {
  const std::int64_t heads = 2;
  const Tensor lse = {{ir::DType::kF32, {2, 2, 70}, {}}, 5, 7};
  for (const std::int64_t causal : {0, 1}) {
    expect_agreement({"attention_qkv_grad",
                      {f32({2, 70, 32}), f32({2, 70, 96}), f32({2, 70, 32}), lse},
                      {{"heads", heads}, {"causal", causal}}});
    expect_agreement({"attention_grad",
                      {f32({2, 70, 16}), f32({2, 70, 32}), f32({2, 40, 16}), f32({2, 40, 8}),
                       f32({2, 70, 16}), lse},
                      {{"heads", heads}, {"kv_heads", std::int64_t{1}}, {"causal", causal}}});
  }
  expect_agreement({"attention_qkv_grad",
                    {f32({2, 70, 32}), f32({2, 70, 96}), f32({2, 70, 32}), lse, f32({70, 70})},
                    {{"heads", heads}}});
  // Rows that a finite mask hides everywhere.
  const Tensor far = {{ir::DType::kF32, {2, 2, 70}, {}}, -3.4e38, -3.4e38};
  const Tensor hidden = {{ir::DType::kF32, {70, 70}, {}}, -3.4e38, -3.4e38};
  for (const std::int64_t causal : {0, 1}) {
    expect_agreement({"attention_qkv_grad",
                      {f32({2, 70, 32}), f32({2, 70, 96}), f32({2, 70, 32}), far, hidden},
                      {{"heads", heads}, {"causal", causal}}});
    expect_agreement({"attention_grad",
                      {f32({2, 70, 32}), f32({2, 70, 32}), f32({2, 70, 32}), f32({2, 70, 32}),
                       f32({2, 70, 32}), far, hidden},
                      {{"heads", heads}, {"causal", causal}}});
  }
}

}  // namespace
}  // namespace plimsoll::kernels
