// Reference numbers: tools/references/nn_operators.py.
#include "plimsoll/ops/testing/wave.h"

#include <cmath>

namespace plimsoll::ops {
namespace {

const std::int64_t kBig = std::int64_t{1} << 62;

TensorType f32(const ir::Shape& shape) {
  return {ir::DType::kF32, shape, {}};
}

const ir::Attributes kConv2d{{"strides", ir::Ints{2, 1}},
                             {"dilations", ir::Ints{1, 2}},
                             {"pads", ir::Ints{0, 1, 1, 2}},
                             {"group", std::int64_t{2}}};

ir::Attributes with(ir::Attributes attributes, const ir::Attributes& more) {
  for (const auto& [name, value] : more.entries()) attributes.set(name, value);
  return attributes;
}

TEST(Conv, AgreesWithPyTorchInGroupsWithStridesPadsAndDilations) {
  const Array x = wave({2, 4, 6, 7}, 0.0);
  const Array w = wave({6, 2, 3, 2}, 0.5);
  const Array y = run_operator("conv", {x, w, wave({6}, 1.0)}, kConv2d)[0];
  EXPECT_EQ(y.type.shape, (ir::Shape{2, 6, 3, 8}));
  expect_fingerprint(y, {-25.3718013699204, 18.0527146649451});
  const Array dy = wave(y.type.shape, 0.7);
  expect_fingerprint(
      run_operator("conv_grad_input", {dy, w}, with(kConv2d, {{"shape", ir::Ints{2, 4, 6, 7}}}))[0],
      {-20.6213068116336, -0.693230689095871});
  const auto weights =
      run_operator("conv_grad_weight", {x, dy},
                   with(kConv2d, {{"shape", ir::Ints{6, 2, 3, 2}}, {"bias", std::int64_t{1}}}));
  expect_fingerprint(weights[0], {-12.8171736447895, -7.25757851524343});
  expect_fingerprint(weights[1], {-0.0082931516616036, 0.189634575780646});
}

TEST(Conv, WorksInOneDimension) {
  const ir::Attributes attributes{{"strides", ir::Ints{2}}, {"pads", ir::Ints{1, 1}}};
  const Array x = wave({2, 3, 9}, 0.0);
  const Array w = wave({4, 3, 3}, 0.5);
  expect_fingerprint(run_operator("conv", {x, w}, attributes)[0],
                     {-1.4912631925602, 0.947871007720222});
  const Array dy = wave({2, 4, 5}, 0.7);
  expect_fingerprint(
      run_operator("conv_grad_input", {dy, w}, with(attributes, {{"shape", ir::Ints{2, 3, 9}}}))[0],
      {-1.02285652747623, 1.92991139475466});
  expect_fingerprint(run_operator("conv_grad_weight", {x, dy},
                                  with(attributes, {{"shape", ir::Ints{4, 3, 3}}}))[0],
                     {-1.06203160767481, 0.202450332391886});
}

TEST(Conv, WorksInThreeDimensions) {
  const ir::Attributes attributes{{"pads", ir::Ints{1, 1, 1, 1, 1, 1}}};
  const Array x = wave({1, 2, 3, 4, 3}, 0.0);
  const Array w = wave({2, 2, 2, 3, 2}, 0.5);
  expect_fingerprint(run_operator("conv", {x, w}, attributes)[0],
                     {-4.80313784961448, 0.855703765193813});
  const Array dy = wave({1, 2, 4, 4, 4}, 0.7);
  expect_fingerprint(run_operator("conv_grad_input", {dy, w},
                                  with(attributes, {{"shape", ir::Ints{1, 2, 3, 4, 3}}}))[0],
                     {-6.17619308112273, -2.88176309991526});
  expect_fingerprint(run_operator("conv_grad_weight", {x, dy},
                                  with(attributes, {{"shape", ir::Ints{2, 2, 2, 3, 2}}}))[0],
                     {-3.69080500639247, -1.85826224818524});
}

TEST(Conv, TransposeAgreesWithPyTorch) {
  const ir::Attributes attributes{{"strides", ir::Ints{2, 3}},
                                  {"pads", ir::Ints{1, 1, 1, 1}},
                                  {"output_padding", ir::Ints{1, 0}},
                                  {"group", std::int64_t{2}}};
  const Array y = run_operator("conv_transpose",
                               {wave({2, 4, 3, 4}, 0.0), wave({4, 3, 3, 2}, 0.5), wave({6}, 1.0)},
                               attributes)[0];
  EXPECT_EQ(y.type.shape, (ir::Shape{2, 6, 6, 9}));
  expect_fingerprint(y, {0.664224970951764, 5.13994477711002});
}

TEST(Conv, AcceptsAnEmptyBatch) {
  EXPECT_EQ(run_operator("conv", {wave({0, 3, 5, 5}, 0), wave({4, 3, 3, 3}, 0)})[0].type.shape,
            (ir::Shape{0, 4, 3, 3}));
  const auto dw = run_operator("conv_grad_weight", {wave({0, 3, 5, 5}, 0), wave({0, 4, 3, 3}, 0)},
                               {{"shape", ir::Ints{4, 3, 3, 3}}});
  expect_fingerprint(dw[0], {0, 0});
}

TEST(Conv, CountsTwoOperationsPerProduct) {
  Builder builder("one");
  builder.call1(
      "conv", {builder.input("x", f32({8, 64, 56, 56})), builder.input("w", f32({128, 32, 3, 3}))},
      {{"pads", ir::Ints{1, 1, 1, 1}}, {"group", std::int64_t{2}}});
  EXPECT_EQ(cost_of(builder.graph(), builder.graph().nodes[0]).operations,
            2.0 * 8 * 128 * 56 * 56 * 32 * 9);
}

TEST(Conv, ResultsFollowTheInputsLayout) {
  Builder builder("one");
  TensorType x = f32({8, 64, 56, 56});
  x.layout = ir::Layout::channels_last(4);
  const Var y =
      builder.call1("conv", {builder.input("x", x), builder.input("w", f32({32, 64, 1, 1}))});
  EXPECT_EQ(y.type().layout, x.layout);
}

TEST(Conv, RefusesWhatDoesNotFit) {
  const TensorType x = f32({2, 4, 6, 7});
  const TensorType w = f32({6, 4, 3, 3});
  EXPECT_EQ(refusal("conv", {x, w}), "");
  EXPECT_EQ(refusal("conv", {f32({2, 8, 6, 7}), w}),
            "conv: input has 8 channels in 1 groups, weight expects 4 in each");
  for (const std::int64_t bad : {std::int64_t{0}, std::int64_t{-1}, kBig}) {
    EXPECT_NE(refusal("conv", {x, w}, {{"strides", ir::Ints{bad, 1}}}), "") << bad;
    EXPECT_NE(refusal("conv", {x, w}, {{"dilations", ir::Ints{1, bad}}}), "") << bad;
    EXPECT_NE(refusal("conv", {x, w}, {{"group", bad}}), "") << bad;
  }
  EXPECT_NE(refusal("conv", {x, w}, {{"pads", ir::Ints{-1, 0, 0, 0}}}), "");
  EXPECT_NE(refusal("conv", {x, w}, {{"pads", ir::Ints{kBig, 0, 0, 0}}}), "");
  EXPECT_NE(refusal("conv", {x, w}, {{"pads", ir::Ints{1}}}), "");
  EXPECT_NE(refusal("conv", {f32({2, 4, 2, 7}), w}), "");
  EXPECT_NE(refusal("conv", {f32({2, 4, 6}), w}), "");
  EXPECT_NE(refusal("conv", {f32({2, 4}), f32({2, 4})}), "");
  EXPECT_NE(refusal("conv", {x, f32({6, 4, 0, 3})}), "");
  EXPECT_NE(refusal("conv", {x, w, f32({5})}), "");
  EXPECT_NE(refusal("conv", {x, {ir::DType::kF16, w.shape, {}}}), "");
  EXPECT_NE(refusal("conv", {{ir::DType::kI64, x.shape, {}}, {ir::DType::kI64, w.shape, {}}}), "");
  EXPECT_NE(refusal("conv_grad_input", {x, w}), "");
  EXPECT_NE(refusal("conv_grad_input", {x, w}, {{"shape", ir::Ints{kBig, kBig, 3, 3}}}), "");
  EXPECT_NE(refusal("conv_grad_weight", {x, x}, {{"shape", ir::Ints{6, 4, 3, 3}}}), "");
}

TEST(Conv, TransposeRefusesWhatDoesNotFit) {
  const TensorType x = f32({2, 4, 3, 4});
  const TensorType w = f32({4, 3, 3, 2});
  EXPECT_EQ(refusal("conv_transpose", {x, w}), "");
  EXPECT_NE(refusal("conv_transpose", {x, w}, {{"output_padding", ir::Ints{1, 0}}}), "");
  EXPECT_NE(refusal("conv_transpose", {x, w}, {{"output_padding", ir::Ints{0}}}), "");
  EXPECT_NE(refusal("conv_transpose", {x, w}, {{"pads", ir::Ints{9, 9, 9, 9}}}), "");
  EXPECT_NE(refusal("conv_transpose", {x, w}, {{"group", kBig}}), "");
  EXPECT_NE(refusal("conv_transpose", {f32({2, 4, 0, 4}), w}), "");
  EXPECT_NE(
      refusal("conv_transpose", {f32({1, 4, kBig, 1}), w}, {{"strides", ir::Ints{1 << 30, 1}}}),
      "");
}

TEST(Matmul, AgreesWithPyTorchWithBroadcastBatches) {
  const Array y = run_operator("matmul", {wave({3, 1, 2, 4}, 0.0), wave({5, 4, 3}, 0.5)})[0];
  EXPECT_EQ(y.type.shape, (ir::Shape{3, 5, 2, 3}));
  expect_fingerprint(y, {-1.19616811159832, 0.550230482745808});
}

TEST(Matmul, ReadsTurnedOperands) {
  const Array a = Array::of_reals({2, 3}, {1, 2, 3, 4, 5, 6});
  const Array b = Array::of_reals({2, 2}, {1, 2, 3, 4});
  const ir::Attributes turned_a{{"trans_a", std::int64_t{1}}};
  const ir::Attributes both{{"trans_a", std::int64_t{1}}, {"trans_b", std::int64_t{1}}};
  EXPECT_EQ(run_operator("matmul", {a, b}, turned_a)[0].reals,
            (std::vector<double>{13, 18, 17, 24, 21, 30}));
  EXPECT_EQ(run_operator("matmul", {a, b}, both)[0].reals,
            (std::vector<double>{9, 19, 12, 26, 15, 33}));
}

TEST(Matmul, OverNothingIsZero) {
  EXPECT_EQ(run_operator("matmul", {wave({2, 0}, 0), wave({0, 2}, 0)})[0].reals,
            (std::vector<double>{0, 0, 0, 0}));
}

TEST(Matmul, RefusesWhatDoesNotFit) {
  EXPECT_EQ(refusal("matmul", {f32({2, 3}), f32({4, 5})}),
            "matmul: shapes [2,3] and [4,5] do not multiply: 3 columns meet 4 rows");
  EXPECT_NE(refusal("matmul", {f32({3}), f32({3, 5})}), "");
  EXPECT_NE(refusal("matmul", {f32({2, 3, 3}), f32({4, 3, 3})}), "");
  EXPECT_NE(refusal("matmul", {f32({kBig, 1}), f32({1, kBig})}), "");
}

TEST(Linear, AgreesWithPyTorch) {
  const ir::Attributes turned{{"trans_w", std::int64_t{1}}};
  const Array x = wave({2, 3, 4}, 0.0);
  const Array w = wave({5, 4}, 0.5);
  expect_fingerprint(run_operator("linear", {x, w, wave({5}, 1.0)}, turned)[0],
                     {17.6037615181962, -5.17824878476978});
  const Array dy = wave({2, 3, 5}, 0.7);
  expect_fingerprint(run_operator("linear", {dy, w})[0], {4.79449863851534, -3.17261437964666});
  const auto weights =
      run_operator("linear_grad_weight", {x, dy}, with(turned, {{"bias", std::int64_t{1}}}));
  expect_fingerprint(weights[0], {5.44536791969976, -3.62320655405433});
  expect_fingerprint(weights[1], {5.21307363146379, 7.349780441425});
}

TEST(Linear, WeightGradientLiesAsTheWeight) {
  const Array x = Array::of_reals({2, 1}, {1, 2});
  const Array dy = Array::of_reals({2, 2}, {3, 4, 5, 6});
  const Array dw = run_operator("linear_grad_weight", {x, dy})[0];
  EXPECT_EQ(dw.type.shape, (ir::Shape{1, 2}));
  EXPECT_EQ(dw.reals, (std::vector<double>{13, 16}));
}

TEST(Linear, RefusesWhatDoesNotFit) {
  EXPECT_EQ(refusal("linear", {f32({2, 3}), f32({4, 5})}),
            "linear: input has 3 features, weight expects 4");
  EXPECT_NE(refusal("linear", {f32({}), f32({4, 5})}), "");
  EXPECT_NE(refusal("linear", {f32({2, 4}), f32({4, 5}), f32({4})}), "");
  EXPECT_NE(refusal("linear_grad_weight", {f32({2, 4}), f32({3, 5})}), "");
  EXPECT_NE(refusal("linear_grad_weight", {f32({2, 4}), f32({})}), "");
}

TEST(Attention, AgreesWithPyTorchWithGroupedHeads) {
  const ir::Attributes attributes{{"heads", std::int64_t{4}}, {"kv_heads", std::int64_t{2}}};
  const std::vector<Array> inputs{wave({2, 3, 8}, 0.0), wave({2, 5, 4}, 0.5), wave({2, 5, 6}, 1.0)};
  const auto made = run_operator("attention", inputs, attributes);
  expect_fingerprint(made[0], {4.26153072104935, 2.48721506489518});
  EXPECT_EQ(made[1].type.shape, (ir::Shape{2, 4, 3}));
  const auto gradients = run_operator(
      "attention_grad", {wave({2, 3, 12}, 0.7), inputs[0], inputs[1], inputs[2], made[0], made[1]},
      attributes);
  expect_fingerprint(gradients[0], {6.45094780699797, -1.69228462697485});
  expect_fingerprint(gradients[1], {6.43963697583116, -3.31718646215378});
  expect_fingerprint(gradients[2], {5.94759080217313, -0.0852120828563142});
}

TEST(Attention, AgreesWithPyTorchCausalAndMasked) {
  const ir::Attributes attributes{
      {"heads", std::int64_t{4}}, {"kv_heads", std::int64_t{2}}, {"causal", std::int64_t{1}}};
  const Array mask = wave({2, 1, 3, 5}, 0.2);
  const std::vector<Array> inputs{wave({2, 3, 8}, 0.0), wave({2, 5, 4}, 0.5), wave({2, 5, 6}, 1.0),
                                  mask};
  const auto made = run_operator("attention", inputs, attributes);
  expect_fingerprint(made[0], {4.95783251240181, -0.138469769266544});
  const auto gradients = run_operator(
      "attention_grad",
      {wave({2, 3, 12}, 0.7), inputs[0], inputs[1], inputs[2], made[0], made[1], mask}, attributes);
  expect_fingerprint(gradients[0], {6.21137309101106, -3.93165284059768});
  expect_fingerprint(gradients[1], {5.51111830101339, -0.879840107204128});
  expect_fingerprint(gradients[2], {3.39206849339364, 2.05415799279601});
}

TEST(Attention, TakesQueriesKeysAndValuesSideBySide) {
  const ir::Attributes attributes{{"heads", std::int64_t{2}}, {"causal", std::int64_t{1}}};
  const Array qkv = wave({2, 4, 12}, 0.0);
  const auto made = run_operator("attention_qkv", {qkv}, attributes);
  expect_fingerprint(made[0], {-1.71293350078613, 0.69229816267104});
  expect_fingerprint(run_operator("attention_qkv_grad",
                                  {wave({2, 4, 4}, 0.7), qkv, made[0], made[1]}, attributes)[0],
                     {-1.75056552207003, 0.358270501891346});
}

// As exporters hide padding: every score is the same huge number, so all values weigh the same.
TEST(Attention, ARowHiddenByAFiniteMaskAverages) {
  const Array v = Array::of_reals({1, 3, 1}, {1, 2, 6});
  const Array mask = Array::of_reals({1, 1, 1, 3}, {-3.4e38, -3.4e38, -3.4e38});
  const auto made =
      run_operator("attention", {wave({1, 1, 1}, 0.0), wave({1, 3, 1}, 0.5), v, mask}, {});
  EXPECT_NEAR(made[0].reals[0], 3, 1e-12);
}

// fp32 keeps no log 3 beside -3.4e38; the gradient of the average is a third of dy to each value
// all the same.
TEST(Attention, TheGradientOfARowHiddenByAFiniteMaskIsThatOfTheAverage) {
  const auto narrow = [](Array array) {
    array.type.dtype = ir::DType::kF32;
    array.round();
    return array;
  };
  const Array q = narrow(Array::of_reals({1, 1, 1}, {0.5}));
  const Array k = narrow(Array::of_reals({1, 3, 1}, {1, 2, 4}));
  const Array v = narrow(Array::of_reals({1, 3, 1}, {1, 2, 6}));
  const Array mask = narrow(Array::of_reals({1, 1, 1, 3}, {-3.4e38, -3.4e38, -3.4e38}));
  const auto made = run_operator("attention", {q, k, v, mask}, {});
  const Array dy = narrow(Array::of_reals({1, 1, 1}, {1.5}));
  const auto gradients = run_operator("attention_grad", {dy, q, k, v, made[0], made[1], mask}, {});
  for (const double dv : gradients[2].reals) EXPECT_NEAR(dv, 0.5, 1e-6);
  // dscore is a third of 1.5 * (v - 3) each.
  EXPECT_NEAR(gradients[0].reals[0], 0.5 * (-2 * 1 + -1 * 2 + 3 * 4), 1e-5);
  EXPECT_NEAR(gradients[1].reals[2], 0.5 * 3 * 0.5, 1e-6);
}

TEST(Attention, ARowThatSeesNothingGivesZero) {
  const ir::Attributes causal{{"heads", std::int64_t{1}}, {"causal", std::int64_t{1}}};
  const auto made = run_operator(
      "attention", {wave({1, 3, 2}, 0.0), wave({1, 1, 2}, 0.5), wave({1, 1, 2}, 1.0)}, causal);
  EXPECT_EQ(std::vector<double>(made[0].reals.begin(), made[0].reals.begin() + 4),
            (std::vector<double>{0, 0, 0, 0}));
  EXPECT_EQ(made[1].reals[0], -std::numeric_limits<double>::infinity());
  const auto gradients =
      run_operator("attention_grad",
                   {wave({1, 3, 2}, 0.7), wave({1, 3, 2}, 0.0), wave({1, 1, 2}, 0.5),
                    wave({1, 1, 2}, 1.0), made[0], made[1]},
                   causal);
  EXPECT_EQ(gradients[0].reals[0], 0);
  EXPECT_FALSE(std::isnan(gradients[1].reals[0]));
}

TEST(Attention, CountsOnlyVisiblePairs) {
  const auto operations = [](std::int64_t rows, std::int64_t columns) {
    Builder builder("one");
    builder.call("attention",
                 {builder.input("q", f32({2, rows, 8})), builder.input("k", f32({2, columns, 8})),
                  builder.input("v", f32({2, columns, 8}))},
                 {{"heads", std::int64_t{2}}, {"causal", std::int64_t{1}}});
    return cost_of(builder.graph(), builder.graph().nodes[0]).operations;
  };
  constexpr double kPair = 2.0 * 2 * (2 * (4 + 4) + 5);
  EXPECT_EQ(operations(3, 3), kPair * (1 + 2 + 3));
  EXPECT_EQ(operations(2, 5), kPair * (4 + 5));
  EXPECT_EQ(operations(5, 2), kPair * (1 + 2));
}

TEST(Attention, RefusesWhatDoesNotFit) {
  const TensorType q = f32({2, 3, 8});
  const TensorType k = f32({2, 5, 8});
  const auto heads = [](std::int64_t count) { return ir::Attributes{{"heads", count}}; };
  EXPECT_EQ(refusal("attention", {q, k, k}, heads(4)), "");
  EXPECT_EQ(refusal("attention", {q, k, k}, heads(3)),
            "attention: query has 8 features, expects a multiple of 3");
  for (const std::int64_t bad : {std::int64_t{0}, std::int64_t{-4}, kBig}) {
    EXPECT_NE(refusal("attention", {q, k, k}, heads(bad)), "") << bad;
    EXPECT_NE(refusal("attention", {q, k, k}, {{"heads", std::int64_t{4}}, {"kv_heads", bad}}), "")
        << bad;
    EXPECT_NE(refusal("attention_qkv", {f32({2, 3, 12})}, heads(bad)), "") << bad;
  }
  EXPECT_NE(refusal("attention", {q, f32({3, 5, 8}), k}, heads(4)), "");
  EXPECT_NE(refusal("attention", {q, k, f32({2, 4, 8})}, heads(4)), "");
  EXPECT_NE(refusal("attention", {q, k, k, f32({3, 4})}, heads(4)), "");
  EXPECT_NE(refusal("attention", {f32({2, 3, 0}), f32({2, kBig, 0}), f32({2, kBig, 0})}, heads(4)),
            "");
  EXPECT_NE(refusal("attention", {q, k, k}, {{"scale", std::numeric_limits<double>::infinity()}}),
            "");
  EXPECT_NE(refusal("attention_qkv", {f32({2, 3, 8})}, heads(1)), "");
}

}  // namespace
}  // namespace plimsoll::ops
