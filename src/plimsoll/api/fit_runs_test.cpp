// Plans within a budget, run for real: the same bits as without a plan, whatever was recomputed,
// swapped or encoded.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/api/testing/same_bits.h"
#include "plimsoll/autodiff/training.h"
#include "plimsoll/base/random.h"
#include "plimsoll/kernels/cpu/cpu_kernels.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/profile/measure_operators.h"
#include "plimsoll/profile/operator_costs.h"

namespace plimsoll::api {
namespace {

using ops::Builder;
using ops::Var;

// A training step of a random net: linear layers, ReLU, dropout, sums with what came before, one
// max pool.
ir::Graph random_net(std::uint64_t seed) {
  Random random(seed);
  Builder b("net");
  const std::int64_t batch = 4 + random.below(12);
  const std::int64_t width = 32 * (1 + random.below(3));
  const Var counter = b.source("counter", ir::ValueKind::kState, {ir::DType::kU64, {}, {}});
  Var x = b.input("x", {ir::DType::kF32, {batch, 2, 8, width}, {}});
  x = b.call("max_pool", {x}, {{"kernel", ir::Ints{2, 2}}, {"strides", ir::Ints{2, 2}}})[0];
  x = b.call1("reshape", {x}, {{"shape", ir::Ints{batch * 8, width / 2}}});
  std::vector<Var> pool{x};
  for (std::int64_t layer = 0, layers = 4 + random.below(8); layer < layers; ++layer) {
    const Var in =
        pool[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(pool.size())))];
    const ir::TensorType type{ir::DType::kF32, {width / 2, width / 2}, {}};
    Var y =
        b.call1("matmul",
                {in, b.weight(fmt::format("w{}", layer), type, {ir::Init::Kind::kNormal, 0, 0.2})});
    if (random.chance(0.8)) y = b.call1("relu", {y});
    if (random.chance(0.4)) y = b.call1("dropout", {y, counter}, {{"ratio", 0.5}, {"seed", layer}});
    if (random.chance(0.4)) y = b.call1("add", {y, in});
    pool.push_back(y);
  }
  const Var loss = b.call1("reduce_mean", {b.call1("mul", {pool.back(), pool.back()})});
  b.set_phase(ir::Phase::kUpdate);
  b.update(counter, b.call1("increment", {counter}));
  const ir::Graph graph = *b.finish({loss});
  autodiff::TrainingOptions how;
  how.optimizer = *autodiff::parse_optimizer(random.chance(0.5) ? "adam" : "momentum");
  auto training = autodiff::make_training_graph(graph, how);
  EXPECT_TRUE(training) << training.error().message;
  // Laid out as the pipeline does it: without the layers that nothing depends on.
  return training ? *assign_layouts(*training, 1) : ir::Graph{};
}

PlanOptions with_remedies(int bits, const std::string& budget) {
  PlanOptions out;
  out.budget = budget;
  out.remedies = {.recompute = (bits & 1) != 0,
                  .swap = (bits & 2) != 0,
                  .encode = (bits & 4) != 0,
                  .lossy = false};
  // what is made before the clock is looked at: what counts here is that it runs
  out.deadline_seconds = 0;
  out.compare = false;
  return out;
}

struct Tally {
  int planned = 0;
  int refused = 0;
  Bytes swapped;
  Bytes encoded;
};

void expect_right(std::uint64_t seed, int bits, Tally& tally) {
  const std::string budget = fmt::format("{}%", 65 + 4 * (seed % 8));
  SCOPED_TRACE(fmt::format("seed {} remedies {} budget {}", seed, bits, budget));
  const ir::Graph graph = random_net(seed);
  PlanOptions options = with_remedies(bits, budget);
  const auto kernels = kernels::cpu_kernel_facts(graph, {1});
  ASSERT_TRUE(kernels) << kernels.error().message;
  options.kernels = *kernels;
  if (bits == 4) {  // encoding alone seldom meets a budget: put every map away instead
    options.budget = "200%";
    options.strategy = "encode";
  }
  const auto planned = plan_graph(graph, options);
  if (!planned) {
    EXPECT_TRUE(planned.error().code == ErrorCode::kDoesNotFit ||
                planned.error().code == ErrorCode::kNoAnswer)
        << planned.error().message;
    ++tally.refused;
    return;
  }
  EXPECT_LE(planned->plan.arena_bytes(), planned->plan.budget);
  const auto expected = run_on_demand_for(graph, 2);
  ASSERT_TRUE(expected) << expected.error().message;
  for (const bool poison : {false, true}) {
    // the peak counted is the arena, or it fails
    const auto got = run_planned_for(planned->plan, 2, poison);
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_TRUE(*got == *expected) << poison;
  }
  ++tally.planned;
  tally.swapped += planned->summary.counts.copied_out;
  tally.encoded += planned->summary.counts.encoded;
}

TEST(FitRuns, RandomNetsUnderAnyRemediesRunAsWithoutAPlan) {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= 21 && !::testing::Test::HasFailure(); ++seed)
    expect_right(seed, 1 + static_cast<int>(seed % 7), tally);
  EXPECT_EQ(tally.planned + tally.refused, 21);
  EXPECT_GE(tally.planned, 5);
  EXPECT_GT(tally.swapped.value, 0);
  EXPECT_GT(tally.encoded.value, 0);
}

TEST(SlowFitRuns, ThousandsOfRandomNetsUnderAnyRemediesRunAsWithoutAPlan) {
  Tally tally;
  for (std::uint64_t seed = 1000; seed < 4000 && !::testing::Test::HasFailure(); ++seed)
    expect_right(seed, 1 + static_cast<int>(seed % 7), tally);
  EXPECT_EQ(tally.planned + tally.refused, 3000);
  EXPECT_GE(tally.planned, 750);
  EXPECT_GT(tally.swapped.value, 0);
  EXPECT_GT(tally.encoded.value, 0);
}

ModelRequest small_model(const std::string& name) {
  ModelRequest out;
  out.model = name;
  out.threads = 1;
  out.sizes = {.batch = 2, .image = 32, .width = 8, .classes = 10};
  if (name == "alexnet") out.sizes.image = 64;
  if (name == "mlp") out.sizes = {.batch = 8, .width = 64, .dropout = 0.3};
  if (name == "gpt2")
    out.sizes = {.batch = 2, .seq = 16, .width = 64, .layers = 2, .heads = 2, .vocab = 100};
  return out;
}

// The smallest of a few budgets for which a plan is found in a moment.
Result<PlannedGraph> tight_plan(Pipeline& prepared, PlanOptions options) {
  Result<PlannedGraph> out = fail(ErrorCode::kNoAnswer, "no budget was tried");
  for (const char* budget : {"60%", "75%", "90%", "97%"}) {
    options.budget = budget;
    out = plan_model(prepared, options);
    if (out) break;
  }
  return out;
}

void expect_model_right(Pipeline& prepared, const PlanOptions& options) {
  const auto planned =
      options.strategy.empty() ? tight_plan(prepared, options) : plan_model(prepared, options);
  ASSERT_TRUE(planned) << planned.error().message;
  const auto expected = run_on_demand_for(prepared.model.graph, 2);
  ASSERT_TRUE(expected) << expected.error().message;
  const auto got = run_planned_for(planned->plan, 2);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(*got == *expected);
}

// Dropout, clipped batch norms, residual sums and pools of both windows among them.
TEST(FitRuns, ModelsWithEveryMapEncodedRunAsWithoutAPlan) {
  for (const char* name : {"mlp", "alexnet", "vgg16", "resnet18", "mobilenet", "unet"}) {
    SCOPED_TRACE(name);
    const ModelRequest request = small_model(name);
    auto prepared = prepare_model(request, "cpu");
    ASSERT_TRUE(prepared) << prepared.error().message;
    PlanOptions options;
    options.strategy = "encode";
    expect_model_right(*prepared, options);
  }
}

TEST(FitRuns, ModelsUnderABudgetWithAllRemediesRunAsWithoutAPlan) {
  for (const char* name : {"mlp", "alexnet", "resnet18", "mobilenet", "gpt2"}) {
    SCOPED_TRACE(name);
    const ModelRequest request = small_model(name);
    auto prepared = prepare_model(request, "cpu");
    ASSERT_TRUE(prepared) << prepared.error().message;
    const PlanOptions options = with_remedies(7, "");
    expect_model_right(*prepared, options);
  }
}

// The bars: what waits for the backward pass, against the same activations in fp32, when half of a
// ReLU is zero.
TEST(FitRuns, LosslessEncodingsHoldSoMuchLessForTheBackwardPass) {
  const std::vector<std::pair<std::string, double>> bars = {
      {"vgg16", 2.2}, {"alexnet", 2.2}, {"resnet50", 1.25}, {"resnet101", 1.25}};
  for (const auto& [name, bar] : bars) {
    ModelRequest request;
    request.model = name;
    request.sizes.batch = 2;
    auto prepared = prepare_model(request, "cpu");
    ASSERT_TRUE(prepared) << prepared.error().message;
    PlanOptions options;
    options.strategy = "encode";
    options.compare = false;
    const auto planned = plan_model(*prepared, options);
    ASSERT_TRUE(planned) << planned.error().message;
    const plan::Held held = plan::held_for_backward(planned->plan);
    EXPECT_GE(static_cast<double>(held.as_fp32.value), bar * static_cast<double>(held.bytes.value))
        << name;
  }
}

TEST(SwapFiles, ValuesThatWaitInAFileComeBackBitByBitAndNoFileStays) {
  const ModelRequest request = small_model("gpt2");
  auto prepared = prepare_model(request, "cpu");
  ASSERT_TRUE(prepared) << prepared.error().message;
  const auto planned = tight_plan(*prepared, with_remedies(2, ""));
  ASSERT_TRUE(planned) << planned.error().message;
  ASSERT_GT(planned->summary.counts.copied_out.value, 0);
  const auto folder = std::filesystem::path(testing::TempDir()) / "swap_files_test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  const auto expected = run_planned_for(planned->plan, 2);
  ASSERT_TRUE(expected) << expected.error().message;
  LeftBehind got;
  RunOptions how;
  how.steps = 2;
  how.threads = 1;
  how.fresh_batches = true;
  how.swap_file = folder.string();
  how.on_end = [&](runtime::Executor& executor) -> Status {
    EXPECT_TRUE(std::filesystem::is_empty(folder));
    got = left_behind(executor);
    return {};
  };
  const auto report = run_plan(planned->plan, how);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_TRUE(got == *expected);
  EXPECT_TRUE(std::filesystem::is_empty(folder));

  how.swap_file = (folder / "no such folder" / "swap").string();
  const auto failed = run_plan(planned->plan, how);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kUsage);
}

TEST(Tuning, KeepsAPlanThatRanWithinTheBudgetAndLearnsItsTimes) {
  const ModelRequest request = small_model("mlp");
  auto prepared = prepare_model(request, "cpu");
  ASSERT_TRUE(prepared) << prepared.error().message;
  PlanOptions options = with_remedies(7, "100%");
  RunOptions how;
  how.threads = 1;
  prepared->planning = options;
  prepared->running = how;
  const auto tuned = tune_model(*prepared, 2);
  ASSERT_TRUE(tuned) << tuned.error().message;
  EXPECT_EQ(tuned->rounds.size(), 2u);
  EXPECT_LE(tuned->planned.plan.arena_bytes(), tuned->planned.plan.budget);
  for (const profile::OperatorCost& cost :
       profile::operator_costs(prepared->model.graph, prepared->profile)) {
    EXPECT_TRUE(cost.measured > 0 || cost.op == "reshape") << cost.op;  // a view takes no step
  }
}

TEST(MeasureOperators, EveryOperatorOfAModelHasATime) {
  const ModelRequest request = small_model("mlp");
  auto prepared = prepare_model(request, "cpu");
  ASSERT_TRUE(prepared) << prepared.error().message;
  schedule::DeviceProfile profile = prepared->profile;
  for (const profile::OperatorCost& cost : profile::operator_costs(prepared->model.graph, profile))
    EXPECT_EQ(cost.measured, 0);
  ASSERT_TRUE(profile::measure_operators(prepared->model.graph, {1, {}}, profile));
  for (const profile::OperatorCost& cost :
       profile::operator_costs(prepared->model.graph, profile)) {
    EXPECT_EQ(cost.measured, cost.nodes) << cost.op;
    EXPECT_GT(cost.seconds, 0) << cost.op;
  }
}

}  // namespace
}  // namespace plimsoll::api
