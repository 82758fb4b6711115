// Reference numbers: tools/references/nn_operators.py.
#include "plimsoll/ops/testing/wave.h"

namespace plimsoll::ops {
namespace {

TensorType f32(const ir::Shape& shape) {
  return {ir::DType::kF32, shape, {}};
}

// Three steps with the gradients the script uses; `moments` start at zero.
Array train(std::string_view op, int moments, bool counts_steps) {
  std::vector<Array> state{wave({6}, 0.0)};
  for (int i = 0; i < moments; ++i) state.emplace_back(TensorType{ir::DType::kF64, {6}, {}});
  for (int step = 0; step < 3; ++step) {
    std::vector<Array> inputs{state[0], wave({6}, 1.0 + step)};
    inputs.insert(inputs.end(), state.begin() + 1, state.end());
    if (counts_steps) inputs.push_back(Array::of_integers({}, {step + 1}));
    inputs.push_back(Array::of_reals({}, {0.5}));
    state = run_operator(op, inputs, {{"lr", 0.1}, {"weight_decay", 0.01}});
  }
  return state[0];
}

TEST(Update, StepsAsPyTorchDoes) {
  expect_fingerprint(train("sgd", 0, false), {2.5496276869631, -1.88217591092273});
  expect_fingerprint(train("momentum", 1, false), {2.42278930732954, -2.12127807062114});
  expect_fingerprint(train("adam", 2, true), {2.24707864415867, -2.23920784619081});
  expect_fingerprint(train("adamw", 2, true), {2.24859950528117, -2.23897368370075});
}

TEST(Update, ResultsTakeTheStatesPlace) {
  const OpDefinition& adam = *find_definition("adam");
  EXPECT_TRUE(adam.in_place.must());
  EXPECT_EQ(adam.in_place.pairs(), (std::vector<InPlace::Pair>{{0, 0}, {1, 2}, {2, 3}}));
  EXPECT_EQ(adam.recompute, Recompute::kNever);
}

TEST(Update, CountsUpAndWraps) {
  const auto largest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(run_operator("increment", {Array::of_integers({2}, {4, largest})},
                         {{"by", std::int64_t{2}}})[0]
                .integers,
            (std::vector<std::int64_t>{6, std::numeric_limits<std::int64_t>::min() + 1}));
}

TEST(Update, AccumulatesGradients) {
  EXPECT_EQ(
      run_operator("accumulate", {Array::of_reals({2}, {1, 2}), Array::of_reals({2}, {3, 4})})[0]
          .reals,
      (std::vector<double>{4, 6}));
}

TEST(Update, RefusesWhatDoesNotFit) {
  const TensorType step{ir::DType::kI64, {}, {}};
  EXPECT_EQ(refusal("adam", {f32({4}), f32({4}), f32({4}), f32({4}), step, f32({})}), "");
  EXPECT_NE(refusal("adam", {f32({4}), f32({4}), f32({4}), f32({5}), step}), "");
  EXPECT_NE(refusal("adam", {f32({4}), f32({4}), f32({4}), f32({4}), f32({})}), "");
  EXPECT_NE(refusal("sgd", {f32({4}), f32({4}), f32({1})}), "");
  EXPECT_NE(refusal("sgd", {step, step}), "");
  EXPECT_NE(refusal("increment", {f32({})}), "");
  EXPECT_NE(refusal("accumulate", {f32({2}), f32({1})}), "");
}

}  // namespace
}  // namespace plimsoll::ops
