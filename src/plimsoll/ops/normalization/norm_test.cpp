// Reference numbers: tools/references/nn_operators.py.
#include <cmath>
#include <limits>

#include "plimsoll/ops/testing/wave.h"

namespace plimsoll::ops {
namespace {

TensorType f32(const ir::Shape& shape) {
  return {ir::DType::kF32, shape, {}};
}
TensorType bf16(const ir::Shape& shape) {
  return {ir::DType::kBF16, shape, {}};
}

const ir::Attributes kEpsilon{{"epsilon", 1e-3}};
const ir::Attributes kFromAxis{{"axis", std::int64_t{2}}};  // gradients read rstd, not epsilon
const ir::Attributes kWithRelu{{"epsilon", 1e-3}, {"activation", std::string("relu")}};

Array x() {
  return wave({3, 4, 2, 3}, 0.0);
}
Array dy() {
  return wave({3, 4, 2, 3}, 0.7);
}
Array gamma() {
  return wave({4}, 0.5);
}
Array beta() {
  return wave({4}, 1.0);
}

TEST(BatchNorm, AgreesWithPyTorch) {
  const auto made = run_operator("batch_norm", {x(), gamma(), beta()}, kEpsilon);
  expect_fingerprint(made[0], {11.9123971879892, -3.876878991077});
  const auto gradients =
      run_operator("batch_norm_grad", {dy(), x(), gamma(), beta(), made[1], made[2]}, kEpsilon);
  expect_fingerprint(gradients[0], {0.520354493142428, 3.80035267768255});
  expect_fingerprint(gradients[1], {6.77429346322028, -7.37910080914182});
  expect_fingerprint(gradients[2], {4.66702177372976, 1.91203410769244});
}

TEST(BatchNorm, AppliesReluInTheSamePass) {
  const auto made = run_operator("batch_norm", {x(), gamma(), beta()}, kWithRelu);
  expect_fingerprint(made[0], {18.1491540375543, -9.26166858323936});
  const auto gradients =
      run_operator("batch_norm_grad", {dy(), x(), gamma(), beta(), made[1], made[2]}, kWithRelu);
  expect_fingerprint(gradients[0], {0.90924976645288, 6.67233718147022});
  expect_fingerprint(gradients[1], {4.12798697539816, 3.85984862334765});
  expect_fingerprint(gradients[2], {8.8556846143553, -1.46070527573881});
}

TEST(BatchNorm, KeepsRunningStatisticsAsPyTorchDoes) {
  const Array mean = wave({4}, 0.3);
  Array var = wave({4}, 0.4);
  for (double& value : var.reals) value += 2;
  expect_fingerprint(
      run_operator("batch_norm_inference", {x(), gamma(), beta(), mean, var}, kEpsilon)[0],
      {5.30169519359219, 0.61541313794554});
  const auto made = run_operator("batch_norm", {x(), gamma(), beta()}, kEpsilon);
  const auto next = run_operator("batch_norm_update", {mean, var, made[1], made[2]},
                                 {{"count", std::int64_t{18}}});
  expect_fingerprint(next[0], {1.63199886968774, -0.358194473244846});
  expect_fingerprint(next[1], {2.99062218501409, -1.60326840618668});
}

TEST(BatchNorm, KeepsStatisticsWideForNarrowData) {
  Builder builder("one");
  const auto out =
      builder.call("batch_norm", {builder.input("x", bf16({2, 4, 3})), builder.input("g", f32({4})),
                                  builder.input("b", f32({4}))});
  EXPECT_EQ(out[0].dtype(), ir::DType::kBF16);
  EXPECT_EQ(out[1].dtype(), ir::DType::kF32);
  EXPECT_FALSE(builder.error());
}

TEST(BatchNorm, RefusesWhatDoesNotFit) {
  const TensorType channels = f32({4});
  EXPECT_EQ(refusal("batch_norm", {f32({2, 4}), channels, channels}), "");
  EXPECT_EQ(refusal("batch_norm", {f32({2, 5}), channels, channels}),
            "batch_norm: input 1 has shape [4], expects [5]");
  EXPECT_NE(refusal("batch_norm", {f32({4}), channels, channels}), "");
  EXPECT_NE(refusal("batch_norm", {f32({2, 4}), channels, channels},
                    {{"activation", std::string("tanh")}}),
            "");
  EXPECT_NE(refusal("batch_norm", {f32({2, 4}), channels, channels}, {{"epsilon", -1.0}}), "");
  EXPECT_NE(refusal("batch_norm", {f32({2, 4}), channels, channels}, {{"epsilon", std::nan("")}}),
            "");
  EXPECT_NE(
      refusal("batch_norm", {bf16({2, 4}), {ir::DType::kF64, {4}, {}}, {ir::DType::kF64, {4}, {}}}),
      "");
  EXPECT_NE(refusal("batch_norm_update", {channels, channels, channels, channels}), "");
  EXPECT_NE(refusal("batch_norm_update", {channels, channels, channels, f32({5})},
                    {{"count", std::int64_t{2}}}),
            "");
}

TEST(BatchNorm, AnEmptyBatchHasNoNaN) {
  const auto made = run_operator("batch_norm", {wave({0, 4, 2}, 0), gamma(), beta()});
  EXPECT_EQ(made[1].reals, (std::vector<double>{0, 0, 0, 0}));
}

TEST(LayerNorm, AgreesWithPyTorch) {
  const ir::Attributes attributes{{"axis", std::int64_t{2}}, {"epsilon", 1e-3}};
  const Array weight = wave({2, 3}, 0.5);
  const auto made = run_operator("layer_norm", {x(), weight, wave({2, 3}, 1.0)}, attributes);
  expect_fingerprint(made[0], {3.25929924682487, -0.563817838024019});
  EXPECT_EQ(made[1].type.shape, (ir::Shape{3, 4}));
  const auto gradients =
      run_operator("layer_norm_grad", {dy(), x(), weight, made[1], made[2]}, kFromAxis);
  expect_fingerprint(gradients[0], {-0.102908414446583, -0.828501146955664});
  expect_fingerprint(gradients[1], {3.01819967095105, 0.206520863779393});
  expect_fingerprint(gradients[2], {-0.99061023153471, 1.11623253055868});
}

TEST(LayerNorm, WithoutAMeanIsRmsNorm) {
  const ir::Attributes attributes{{"axis", std::int64_t{2}}, {"epsilon", 1e-3}};
  const Array weight = wave({2, 3}, 0.5);
  const auto made = run_operator("rms_norm", {x(), weight}, attributes);
  expect_fingerprint(made[0], {5.17640439878105, -3.29330305288607});
  const auto gradients = run_operator("rms_norm_grad", {dy(), x(), weight, made[1]}, kFromAxis);
  expect_fingerprint(gradients[0], {0.378853676470923, 2.77035091488241});
  expect_fingerprint(gradients[1], {1.55229094877408, 4.62988861973566});
}

TEST(LayerNorm, RefusesWhatDoesNotFit) {
  EXPECT_EQ(refusal("layer_norm", {f32({2, 4}), f32({4})}), "");
  EXPECT_EQ(refusal("layer_norm", {f32({2, 4}), f32({4})}, {{"axis", std::int64_t{2}}}),
            "layer_norm: axis 2 is outside a rank of 2");
  EXPECT_NE(refusal("layer_norm", {f32({2, 4}), f32({5})}), "");
  EXPECT_NE(refusal("layer_norm", {f32({}), f32({})}), "");
  EXPECT_NE(refusal("layer_norm_grad", {f32({2, 4}), f32({2, 4}), f32({4}), f32({3}), f32({2})}),
            "");
  EXPECT_NE(refusal("rms_norm_grad", {f32({2, 4}), f32({2, 5}), f32({4}), f32({2})}), "");
}

TEST(GroupNorm, AgreesWithPyTorch) {
  const ir::Attributes attributes{{"groups", std::int64_t{2}}, {"epsilon", 1e-3}};
  const auto made = run_operator("group_norm", {x(), gamma(), beta()}, attributes);
  expect_fingerprint(made[0], {11.5390539948258, -3.87473678222406});
  const auto gradients = run_operator("group_norm_grad", {dy(), x(), gamma(), made[1], made[2]},
                                      {{"groups", std::int64_t{2}}});
  expect_fingerprint(gradients[0], {0.457786652753147, 3.35098191019668});
  expect_fingerprint(gradients[1], {6.5331845007851, -7.73134674083565});
  expect_fingerprint(gradients[2], {4.66702177372976, 1.91203410769244});
}

TEST(GroupNorm, RefusesWhatDoesNotFit) {
  for (const std::int64_t bad :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{3}, std::int64_t{1} << 62}) {
    EXPECT_NE(refusal("group_norm", {f32({2, 4, 3}), f32({4}), f32({4})}, {{"groups", bad}}), "")
        << bad;
  }
}

TEST(Lrn, AgreesWithPyTorch) {
  const ir::Attributes attributes{
      {"size", std::int64_t{3}}, {"alpha", 0.5}, {"beta", 0.75}, {"k", 2.0}};
  expect_fingerprint(run_operator("lrn", {x()}, attributes)[0],
                     {19.8725107029412, -13.1707125461354});
  expect_fingerprint(run_operator("lrn_grad", {dy(), x()}, attributes)[0],
                     {14.6497222473717, 0.797890054811986});
}

TEST(Lrn, AWindowWiderThanTheChannelsTakesThemAll) {
  const Array in = Array::of_reals({1, 2}, {3, 4});
  const ir::Attributes attributes{
      {"size", std::numeric_limits<std::int64_t>::max()}, {"alpha", 0.0}, {"k", 16.0}};
  EXPECT_EQ(run_operator("lrn", {in}, attributes)[0].reals,
            (std::vector<double>{3.0 / 8, 4.0 / 8}));
  EXPECT_NE(refusal("lrn", {f32({2, 4})}, {{"size", std::int64_t{0}}}), "");
}

TEST(Softmax, AgreesWithPyTorchAlongAnyAxis) {
  const ir::Attributes axis{{"axis", std::int64_t{-3}}};
  const auto soft = run_operator("softmax", {x()}, axis);
  expect_fingerprint(soft[0], {8.03799991596459, -5.39935957651863});
  expect_fingerprint(run_operator("softmax_grad", {dy(), soft[0]}, axis)[0],
                     {5.34816367207353, 0.64077089355313});
  const auto logarithm = run_operator("log_softmax", {x()}, axis);
  expect_fingerprint(logarithm[0], {35.0269538977893, -22.8232437820876});
  expect_fingerprint(run_operator("log_softmax_grad", {dy(), logarithm[0]}, axis)[0],
                     {29.7377361309706, -0.843230611824368});
}

TEST(Softmax, RefusesAnAxisOutside) {
  EXPECT_NE(refusal("softmax", {f32({2, 3})}, {{"axis", std::int64_t{2}}}), "");
  EXPECT_NE(refusal("softmax", {f32({})}), "");
  EXPECT_NE(refusal("softmax", {{ir::DType::kI32, {2}, {}}}), "");
}

TEST(CrossEntropy, AgreesWithPyTorchAndSkipsIgnoredLabels) {
  const Array logits = wave({4, 5}, 0.0);
  const Array labels = Array::of_integers({4}, {2, -100, 0, 4});
  const auto made = run_operator("cross_entropy", {logits, labels});
  expect_fingerprint(made[0], {0.165834308760641, 1.23869854958493});
  const Array dloss = wave({}, 0.7);
  expect_fingerprint(run_operator("cross_entropy_grad", {dloss, logits, labels, made[1]})[0],
                     {0.147431753580146, -0.255132762037508});
}

TEST(CrossEntropy, LabelsOutsideTheClassesShowAsNaN) {
  const Array logits = wave({3, 2}, 0.0);
  for (const std::int64_t label : {std::numeric_limits<std::int64_t>::max(), std::int64_t{-7}}) {
    const Array labels = Array::of_integers({3}, {1, label, -100});
    const auto made = run_operator("cross_entropy", {logits, labels});
    EXPECT_TRUE(std::isnan(made[0].reals[0]));
    const auto slope =
        run_operator("cross_entropy_grad", {wave({}, 0.7), logits, labels, made[1]})[0].reals;
    EXPECT_TRUE(std::isfinite(slope[0]) && std::isfinite(slope[1]));
    EXPECT_TRUE(std::isnan(slope[2]) && std::isnan(slope[3]));
    EXPECT_EQ(slope[4], 0);
  }
}

TEST(CrossEntropy, OfNoLabelsIsNaNWithoutAGradient) {
  const Array logits = wave({1, 2}, 0.0);
  const Array labels = Array::of_integers({1}, {-100});
  const auto made = run_operator("cross_entropy", {logits, labels});
  EXPECT_TRUE(std::isnan(made[0].reals[0]));
  EXPECT_EQ(run_operator("cross_entropy_grad", {wave({}, 0.7), logits, labels, made[1]})[0].reals,
            (std::vector<double>{0, 0}));
}

TEST(CrossEntropy, RefusesWhatDoesNotFit) {
  const TensorType labels{ir::DType::kI64, {4}, {}};
  EXPECT_EQ(refusal("cross_entropy", {f32({4, 5}), labels}), "");
  EXPECT_NE(refusal("cross_entropy", {f32({4, 0}), labels}), "");
  EXPECT_NE(refusal("cross_entropy", {f32({5, 5}), labels}), "");
  EXPECT_NE(refusal("cross_entropy", {f32({}), labels}), "");
  EXPECT_NE(refusal("cross_entropy", {f32({4, 5}), f32({4})}), "");
}

TEST(AddRelu, CutsAtZero) {
  EXPECT_EQ(
      run_operator("add_relu", {Array::of_reals({2}, {1, 2}), Array::of_reals({2}, {-3, 1})})[0]
          .reals,
      (std::vector<double>{0, 3}));
  EXPECT_NE(refusal("add_relu", {f32({2}), f32({1})}), "");
}

}  // namespace
}  // namespace plimsoll::ops
