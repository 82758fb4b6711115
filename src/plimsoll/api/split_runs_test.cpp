// Operators and batches in parts, run for real: the bits of the whole.
#include <filesystem>

#include <gtest/gtest.h>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/api/plan_request.h"
#include "plimsoll/api/testing/same_bits.h"
#include "plimsoll/autodiff/training.h"
#include "plimsoll/base/file.h"
#include "plimsoll/base/random.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/rewrite/split_rows.h"

namespace plimsoll::api {
namespace {

using ops::Builder;
using ops::Var;

class RandomSequenceNet {
 public:
  explicit RandomSequenceNet(std::uint64_t seed) : random_(seed) {}

  // A training step on sequences: linear layers, norms, attention, dropout, residual sums and a
  // loss over positions. More rows than a granule, and not always whole granules of them.
  ir::Graph make() {
    const std::int64_t batch = 2 + 2 * random_.below(2);
    constexpr std::int64_t kLengths[] = {512, 700, 1024};
    const std::int64_t length = kLengths[random_.below(3)];
    width_ = 8 * (1 + random_.below(2));
    counter_ = b_.source("counter", ir::ValueKind::kState, {ir::DType::kU64, {}, {}});
    const Var x = b_.input("x", {ir::DType::kF32, {batch, length, width_}, {}});
    const Var labels =
        b_.source("labels", ir::ValueKind::kInput, {ir::DType::kI64, {batch, length}, {}},
                  {ir::Init::Kind::kUniform, 0, 40});
    Var h = b_.call1("add", {x, weight({length, width_})});
    for (std::int64_t layer = 0, layers = 1 + random_.below(3); layer < layers; ++layer)
      h = block(h);
    const Var logits = linear(h, 40);
    const Var loss = b_.call("cross_entropy", {logits, labels}, {})[0];
    b_.set_phase(ir::Phase::kUpdate);
    b_.update(counter_, b_.call1("increment", {counter_}));
    const ir::Graph graph = *b_.finish({loss});
    autodiff::TrainingOptions how;
    how.optimizer = *autodiff::parse_optimizer(random_.chance(0.5) ? "adam" : "momentum");
    auto training = autodiff::make_training_graph(graph, how);
    EXPECT_TRUE(training) << training.error().message;
    return training ? *assign_layouts(*training, 1) : ir::Graph{};
  }

 private:
  Var weight(const ir::Shape& shape) {
    return b_.weight(fmt::format("w{}", weights_++), {ir::DType::kF32, shape, {}},
                     {ir::Init::Kind::kNormal, 0, 0.2});
  }

  Var linear(Var x, std::int64_t columns) {
    const bool turned = random_.chance(0.5);
    const std::int64_t rows = x.dim(-1);
    std::vector<Var> inputs{x,
                            weight(turned ? ir::Shape{columns, rows} : ir::Shape{rows, columns})};
    if (random_.chance(0.7)) inputs.push_back(weight({columns}));
    return b_.call1("linear", inputs, {{"trans_w", std::int64_t{turned}}});
  }

  Var block(Var x) {
    Var h = b_.call("layer_norm", {x, weight({width_}), weight({width_})}, {})[0];
    if (random_.chance(0.5)) {
      h = linear(h, 3 * width_);
      h = b_.call("attention_qkv", {h},
                  {{"heads", std::int64_t{2}}, {"causal", std::int64_t{1}}})[0];
    } else {
      h = b_.call1(random_.chance(0.5) ? "gelu" : "relu", {linear(h, 2 * width_)});
      h = linear(h, width_);
    }
    if (random_.chance(0.5))
      h = b_.call1("dropout", {h, counter_}, {{"ratio", 0.2}, {"seed", weights_}});
    return b_.call1("add", {x, h});
  }

  Random random_;
  Builder b_{"net"};
  Var counter_;
  std::int64_t width_ = 8;
  std::int64_t weights_ = 0;
};

struct Tally {
  int by_rows = 0;
  int by_batch = 0;
};

void expect_same_bits(std::uint64_t seed, Tally& tally) {
  SCOPED_TRACE(fmt::format("seed {}", seed));
  const ir::Graph graph = RandomSequenceNet(seed).make();
  const auto expected = run_on_demand_for(graph, 2);
  ASSERT_TRUE(expected) << expected.error().message;
  const auto compare = [&](const ir::Graph& split) {
    const auto got = run_on_demand_for(split, 2);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_TRUE(*got == *expected);
  };
  for (const std::int64_t limit : {30'000, 200'000}) {
    const auto split = rewrite::split_rows(graph, Bytes(limit));
    ASSERT_TRUE(split) << split.error().message;
    if (split->operators == 0) continue;
    ++tally.by_rows;
    compare(split->graph);
  }
  for (const std::int64_t parts : {2, 4}) {
    const auto split = rewrite::split_batch(graph, parts);
    ASSERT_TRUE(split) << split.error().message;
    if (split->operators == 0) continue;
    ++tally.by_batch;
    compare(split->graph);
  }
}

TEST(SplitRuns, PartsOfRandomNetsHaveTheBitsOfTheWhole) {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= 12 && !HasFailure(); ++seed) expect_same_bits(seed, tally);
  EXPECT_GE(tally.by_rows, 8);
  EXPECT_GE(tally.by_batch, 3);
}

TEST(SlowSplitRuns, PartsOfManyRandomNetsHaveTheBitsOfTheWhole) {
  Tally tally;
  for (std::uint64_t seed = 100; seed < 400 && !HasFailure(); ++seed) expect_same_bits(seed, tally);
  EXPECT_GE(tally.by_rows, 200);
  EXPECT_GE(tally.by_batch, 80);
}

// 2048 positions of 1000 words: the logits are most of the memory.
ModelRequest wordy_model() {
  ModelRequest out;
  out.model = "gpt2";
  out.threads = 1;
  out.sizes = {.batch = 2, .seq = 1024, .width = 16, .layers = 1, .heads = 2, .vocab = 1000};
  return out;
}

PlanOptions splitting(const std::string& budget) {
  PlanOptions out;
  out.budget = budget;
  out.remedies.split = true;
  out.deadline_seconds = 0.3;
  out.compare = false;
  return out;
}

TEST(SplitPlans, FitWhereTheWholeCannotAndRunWithItsBits) {
  auto prepared = prepare_model(wordy_model(), "cpu");
  ASSERT_TRUE(prepared) << prepared.error().message;
  PlanOptions whole = splitting("60%");
  whole.remedies.split = false;
  const auto too_large = plan_model(*prepared, whole);
  ASSERT_FALSE(too_large);
  EXPECT_EQ(too_large.error().code, ErrorCode::kDoesNotFit);
  EXPECT_NE(too_large.error().message.find("with `split` among the techniques it fits"),
            std::string::npos)
      << too_large.error().message;
  const auto planned = plan_model(*prepared, splitting("60%"));
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_LE(planned->plan.arena_bytes(), planned->plan.budget);
  EXPECT_GE(planned->summary.split_operators, 5);
  EXPECT_EQ(planned->summary.split_parts, 2);
  const auto expected = run_on_demand_for(prepared->model.graph, 2);
  ASSERT_TRUE(expected) << expected.error().message;
  const auto got = run_planned_for(planned->plan, 2);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(*got == *expected);
}

TEST(SplitPlans, AreMadeWithAllTechniquesWhereTheWholeHasNoPlan) {
  auto prepared = prepare_model(wordy_model(), "cpu");
  ASSERT_TRUE(prepared) << prepared.error().message;
  PlanOptions all = splitting("60%");
  all.remedies.split = false;
  ASSERT_TRUE(read_techniques("all", all));
  int told = 0;
  all.on_failure = [&](const plan::PlanFailure&) { ++told; };
  const auto in_parts = plan_model(*prepared, all);
  ASSERT_TRUE(in_parts) << in_parts.error().message;
  EXPECT_LE(in_parts->plan.arena_bytes(), in_parts->plan.budget);
  EXPECT_GE(in_parts->summary.split_operators, 5);
  EXPECT_EQ(told, 0);

  all.budget = "95%";
  const auto whole = plan_model(*prepared, all);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->summary.split_operators, 0);

  all.budget = "1%";
  const auto none = plan_model(*prepared, all);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::kDoesNotFit);
  EXPECT_EQ(told, 1);

  all.budget = "60%";
  all.deterministic = true;  // or a smaller budget could give a faster plan
  EXPECT_FALSE(plan_model(*prepared, all));
}

// With a cache, parts that stay in it are faster than the whole, and rightly made.
TEST(SplitPlans, AreNotMadeWhereTheWholeIsAsFast) {
  schedule::DeviceProfile profile = *schedule::shipped_profile("cpu");
  profile.cache = {};
  const auto path = std::filesystem::path(testing::TempDir()) / "without_cache.json";
  ASSERT_TRUE(write_file(path, schedule::to_json(profile)));
  auto prepared = prepare_model(wordy_model(), path.string());
  ASSERT_TRUE(prepared) << prepared.error().message;
  const auto planned = plan_model(*prepared, splitting("100%"));
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_EQ(planned->summary.split_operators, 0);
}

TEST(SplitPlans, TakeNoMoreTimeThanAllowed) {
  auto prepared = prepare_model(wordy_model(), "cpu");
  ASSERT_TRUE(prepared) << prepared.error().message;
  for (const double slowdown : {0.0, 0.01, 0.2}) {
    PlanOptions options = splitting("");
    options.slowdown = slowdown;
    options.deadline_seconds = 0.1;
    const auto planned = plan_model(*prepared, options);
    ASSERT_TRUE(planned) << planned.error().message;
    EXPECT_LE(planned->plan.predicted_seconds,
              planned->summary.no_recompute_seconds * (1 + slowdown) * (1 + 1e-6))
        << slowdown;
  }
}

// Parts of a sum over time would wait for all of its terms at once.
TEST(SplitPlans, SumsOfGradientsOverTimeAreNotSplit) {
  ModelRequest request;
  request.model = "lstm";
  request.sizes = {.batch = 64, .seq = 16, .width = 256, .layers = 2};
  const auto model = load_model(request);
  ASSERT_TRUE(model) << model.error().message;
  const auto splits = rewrite::split_ladder(model->graph, 4);
  ASSERT_TRUE(splits) << splits.error().message;
  EXPECT_TRUE(splits->empty());
}

TEST(SplitPlans, ABatchNormIsNotSplit) {
  ModelRequest request;
  request.model = "resnet18";
  request.sizes = {.batch = 4, .image = 32, .width = 8, .classes = 10};
  const auto model = load_model(request);
  ASSERT_TRUE(model) << model.error().message;
  const auto split = rewrite::split_batch(model->graph, 2);
  ASSERT_TRUE(split) << split.error().message;
  EXPECT_EQ(split->operators, 0);
  EXPECT_TRUE(split->graph == model->graph);
}

}  // namespace
}  // namespace plimsoll::api
