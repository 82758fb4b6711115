#include <gtest/gtest.h>

#include "plimsoll/kernels/testing/differential.h"

namespace plimsoll::kernels {
namespace {

using ir::Ints;

Tensor within(Tensor tensor, double low, double high) {
  tensor.low = low;
  tensor.high = high;
  return tensor;
}
Tensor i32(const ir::Shape& shape, double high) {
  return {{ir::DType::kI32, shape, {}}, 0, high};
}
Tensor truth(const ir::Shape& shape) {
  return {{ir::DType::kBool, shape, {}}, 0, 2};
}

TEST(ActivationKernel, AgreesWithTheReference) {
  for (const char* op : {"elu", "selu", "celu", "softplus", "softsign", "mish", "hard_sigmoid",
                         "hard_swish", "thresholded_relu", "shrink", "sign", "floor", "ceil",
                         "round", "tan", "atan", "sinh", "cosh", "asinh"}) {
    expect_agreement({op, {within(f32({3, 70, 100}), -5, 5)}});
    expect_agreement({op, {last({2, 3, 5, 7})}});
  }
  for (const char* op : {"asin", "acos", "atanh"})
    expect_agreement({op, {within(f32({300}), -0.99, 0.99)}});
  expect_agreement({"acosh", {within(f32({300}), 1.01, 9)}});
}

TEST(ActivationGradKernel, AgreesWithTheReference) {
  for (const char* op : {"elu_grad", "selu_grad", "celu_grad", "mish_grad", "hard_sigmoid_grad",
                         "hard_swish_grad", "thresholded_relu_grad", "shrink_grad"}) {
    expect_agreement({op, {f32({3, 70, 100}), within(f32({3, 70, 100}), -5, 5)}});
  }
}

TEST(ComparisonKernel, AgreesWithTheReference) {
  for (const char* op : {"equal", "less", "less_equal", "greater", "greater_equal"}) {
    expect_agreement({op, {f32({3, 700}), f32({3, 700})}});
    expect_agreement({op, {i64({3, 70}, 4), i64({70}, 4)}});
    expect_agreement({op, {i32({3, 1, 70}, 4), i32({5, 1}, 4)}});
    expect_agreement({op, {last({2, 3, 5, 7}), last({2, 3, 5, 7})}});
  }
  expect_agreement({"equal", {truth({30}), truth({30})}});
}

TEST(LogicKernel, AgreesWithTheReference) {
  for (const char* op : {"logical_and", "logical_or", "logical_xor"}) {
    expect_agreement({op, {truth({3, 700}), truth({3, 700})}});
    expect_agreement({op, {truth({3, 1, 70}), truth({5, 1})}});
  }
  expect_agreement({"logical_not", {truth({3, 700})}});
  expect_agreement({"is_nan", {f32({300})}});
  expect_agreement({"is_inf", {f32({300})}});
}

TEST(WhereKernel, AgreesWithTheReference) {
  expect_agreement({"where", {truth({3, 700}), f32({3, 700}), f32({3, 700})}});
  expect_agreement({"where", {truth({1, 1, 9, 9}), f32({2, 3, 9, 9}), f32({})}});
  expect_agreement({"where", {truth({7, 1}), i64({5}, 9), i64({7, 5}, 9)}});
  expect_agreement({"where", {truth({40}), truth({40}), truth({40})}});
  expect_agreement({"where", {truth({40}), bf16({40}), bf16({40})}});
}

TEST(RmsNormKernel, AgreesWithTheReference) {
  expect_agreement({"rms_norm", {f32({40, 96}), f32({96})}});
  expect_agreement(
      {"rms_norm_grad", {f32({40, 96}), f32({40, 96}), f32({96}), positive(f32({40}))}});
}

TEST(GroupNormKernel, AgreesWithTheReference) {
  for (const std::int64_t groups : {1, 2, 6}) {
    const ir::Attributes how{{"groups", groups}};
    expect_agreement({"group_norm", {f32({3, 6, 5, 7}), f32({6}), f32({6})}, how});
    expect_agreement({"group_norm_grad",
                      {f32({3, 6, 5, 7}), f32({3, 6, 5, 7}), f32({6}), f32({3, groups}),
                       positive(f32({3, groups}))},
                      how});
  }
}

TEST(LrnKernel, AgreesWithTheReference) {
  for (const double beta : {0.75, 0.5}) {
    for (const std::int64_t size : {1, 4, 5, 30}) {
      const ir::Attributes how{{"size", size}, {"alpha", 0.5}, {"beta", beta}, {"k", 2.0}};
      expect_agreement({"lrn", {f32({2, 9, 10, 11})}, how});
      expect_agreement({"lrn_grad", {f32({2, 9, 10, 11}), f32({2, 9, 10, 11})}, how});
      expect_agreement({"lrn", {last({2, 9, 3, 4})}, how});
      expect_agreement({"lrn_grad", {last({2, 9, 3, 4}), last({2, 9, 3, 4})}, how});
    }
  }
}

TEST(IndexingKernels, AgreeWithTheReference) {
  for (const std::int64_t axis : {0, 1, -1}) {
    const ir::Attributes how{{"axis", axis}};
    expect_agreement({"gather_elements", {f32({7, 8, 9}), i64({5, 6, 4}, 5)}, how});
    expect_agreement({"gather_elements", {i64({7, 8, 9}, 50), i32({5, 6, 4}, 5)}, how});
    expect_agreement(
        {"scatter_elements", {f32({7, 8, 9}), i64({5, 6, 4}, 5), f32({5, 6, 4})}, how});
  }
  expect_agreement({"scatter_elements",
                    {f32({7, 8}), i64({5, 6}, 5), f32({5, 6})},
                    {{"axis", std::int64_t{1}}, {"reduction", std::string("add")}}});
  expect_agreement({"gather_nd", {f32({4, 5, 6}), i64({3, 2}, 4)}});
  expect_agreement(
      {"gather_nd", {f32({4, 5, 6}), i64({4, 3, 1}, 5)}, {{"batch_dims", std::int64_t{1}}}});
  expect_agreement({"scatter_nd", {f32({4, 5, 6}), i64({3, 2}, 4), f32({3, 6})}});
  expect_agreement({"scatter_nd",
                    {f32({4, 5, 6}), i64({30, 1}, 4), f32({30, 5, 6})},
                    {{"reduction", std::string("add")}}});
}

TEST(IndexingKernels, AnIndexOutsideNamesNothing) {
  expect_agreement({"gather_elements", {f32({3, 4}), within(i64({3, 4}, 9), -9, 9)}});
  expect_agreement({"gather_nd", {f32({3, 4}), within(i64({20, 2}, 9), -9, 9)}});
  expect_agreement({"scatter_nd", {f32({3, 4}), within(i64({20, 2}, 9), -9, 9), f32({20})}});
}

TEST(RunningSumKernel, AgreesWithTheReference) {
  for (const std::int64_t axis : {0, 1, 2}) {
    for (const std::int64_t exclusive : {0, 1}) {
      const ir::Attributes how{{"axis", axis}, {"exclusive", exclusive}, {"reverse", exclusive}};
      expect_agreement({"cumsum", {f32({5, 6, 7})}, how});
      expect_agreement({"cumsum", {i64({5, 6, 7}, 100)}, how});
    }
  }
}

TEST(TileKernel, AgreesWithTheReference) {
  expect_agreement({"tile", {f32({2, 3})}, {{"repeats", Ints{2, 3}}}});
  expect_agreement({"tile", {i64({4, 1, 5}, 9)}, {{"repeats", Ints{1, 6, 2}}}});
  expect_agreement({"tile", {f32({1, 1})}, {{"repeats", Ints{1, 1}}}});
}

TEST(CastKernel, AgreesWithTheReference) {
  const std::vector<Tensor> inputs{f32({3, 70}), bf16({3, 70}), i64({3, 70}, 5), i32({3, 70}, 5),
                                   truth({3, 70})};
  for (const Tensor& input : inputs) {
    for (const char* to : {"fp32", "bf16", "int64", "int32", "bool"})
      expect_agreement({"cast", {input}, {{"to", std::string(to)}}});
  }
}

TEST(BitCastKernel, AgreesWithTheReference) {
  expect_agreement({"bit_cast", {f32({3, 70})}, {{"to", std::string("int32")}}});
  expect_agreement({"bit_cast", {truth({3, 70})}, {{"to", std::string("uint8")}}});
}

TEST(IntegerKernel, AgreesWithTheReference) {
  for (const char* op : {"add", "sub", "mul"}) {
    expect_agreement({op, {i64({5, 70}, 90), i64({70}, 90)}});
    expect_agreement({op, {i32({5, 1, 7}, 90), i32({6, 1}, 90)}});
  }
}

TEST(ResizeKernel, AgreesWithTheReference) {
  for (const char* mode : {"nearest", "linear"}) {
    for (const char* coordinates : {"half_pixel", "asymmetric", "align_corners"}) {
      const auto to = [&](const Ints& shape) {
        return ir::Attributes{{"shape", shape},
                              {"mode", std::string(mode)},
                              {"coordinates", std::string(coordinates)}};
      };
      expect_agreement({"resize", {f32({2, 3, 5, 7})}, to({2, 3, 10, 21})});
      expect_agreement({"resize", {f32({2, 3, 9, 8})}, to({2, 3, 4, 5})});
      expect_agreement({"resize_grad", {f32({2, 3, 10, 21})}, to({2, 3, 5, 7})});
      expect_agreement({"resize_grad", {f32({2, 3, 4, 5})}, to({2, 3, 9, 8})});
    }
  }
}

TEST(DepthToSpaceKernel, AgreesWithTheReference) {
  for (const char* mode : {"DCR", "CRD"}) {
    const ir::Attributes how{{"block", std::int64_t{2}}, {"mode", std::string(mode)}};
    expect_agreement({"depth_to_space", {f32({2, 12, 3, 5})}, how});
    expect_agreement({"space_to_depth", {f32({2, 3, 6, 10})}, how});
  }
}

TEST(PadKernel, PadsEveryType) {
  const ir::Attributes how{{"pads", Ints{1, 0, 2, -1}}, {"value", 3.0}};
  expect_agreement({"pad", {f32({4, 5})}, how});
  expect_agreement({"pad", {i64({4, 5}, 9)}, how});
  expect_agreement({"pad", {bf16({4, 5})}, how});
}

}  // namespace
}  // namespace plimsoll::kernels
