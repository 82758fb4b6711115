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

// Two parts one after the other, each with its own elements of the moments.
TEST(Update, PartsOfAWeightAreUpdatedAsTheWhole) {
  const Array w = wave({6}, 0.0);
  const Array g = wave({6}, 1.0);
  const Array step = Array::of_integers({}, {2});
  for (const std::string_view op : {"momentum", "adam", "adamw"}) {
    const bool two = op != "momentum";
    const auto update = [&](const Array& weight, std::size_t first, std::size_t count,
                            ir::Attributes attributes) {
      std::vector<Array> inputs{weight, g};
      for (int i = 0; i < (two ? 2 : 1); ++i) {
        const Array all = Array::of_reals({6}, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6});
        const auto begin = all.reals.begin() + static_cast<std::ptrdiff_t>(first);
        inputs.push_back(Array::of_reals({static_cast<std::int64_t>(count)},
                                         {begin, begin + static_cast<std::ptrdiff_t>(count)}));
      }
      if (two) inputs.push_back(step);
      attributes.set("lr", 0.1);
      return run_operator(op, inputs, attributes);
    };
    const std::vector<Array> whole = update(w, 0, 6, {});
    const std::vector<Array> front = update(w, 0, 4, {{"first", std::int64_t{0}}});
    const std::vector<Array> back = update(front[0], 4, 2, {{"first", std::int64_t{4}}});
    EXPECT_EQ(back[0].reals, whole[0].reals) << op;
    EXPECT_EQ(front[0].reals[5], w.reals[5]) << "what is behind the part stays";
    for (std::size_t i = 1; i < whole.size(); ++i) {
      std::vector<double> joined = front[i].reals;
      joined.insert(joined.end(), back[i].reals.begin(), back[i].reals.end());
      EXPECT_EQ(joined, whole[i].reals) << op;
    }
  }
}

TEST(Update, PartsLieInTheirWeight) {
  const TensorType step{ir::DType::kI64, {}, {}};
  const auto refused = [&](std::int64_t first, std::int64_t count) {
    return refusal("adamw", {f32({2, 3}), f32({2, 3}), f32({count}), f32({count}), step},
                   {{"first", first}});
  };
  EXPECT_EQ(refused(0, 6), "");
  EXPECT_EQ(refused(4, 2), "");
  EXPECT_EQ(refused(6, 0), "");
  EXPECT_NE(refused(4, 3), "");
  EXPECT_NE(refused(-1, 3), "");
  EXPECT_NE(refused(std::numeric_limits<std::int64_t>::max(), 3), "");
  EXPECT_NE(refusal("adamw", {f32({6}), f32({6}), f32({3}), f32({2}), step},
                    {{"first", std::int64_t{0}}}),
            "");
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
