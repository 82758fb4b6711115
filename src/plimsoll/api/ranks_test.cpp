// Ranks that are threads train as one rank with all their examples does. Ranks that are processes
// are in tests/ranks.
#include "plimsoll/api/ranks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/api/testing/small_run.h"
#include "plimsoll/dist/testing/thread_ranks.h"
#include "plimsoll/kernels/collective/rank_backend.h"
#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/collective/collective.h"
#include "plimsoll/plan/check_plan.h"

namespace plimsoll::api {
namespace {

struct RankRun {
  std::string model;
  std::string dtype = "fp32";
  int ranks = 2;
  std::int64_t batch = 4;  // of one rank
  Bytes bucket{};
  bool fixed = true;
  bool on_demand = false;
  bool micro_batches = false;  // one rank takes them in as many pieces: each normalises by itself
  std::string optimizer = "adamw";
  double clip = 0;
  std::string shard = {};
  int accumulate = 1;
  std::int64_t vocab = 0;  // 0: a small one
  bool dense_tables = false;
  bool sync_batch_norm = false;
};

Pipeline pipeline_of(const RankRun& run, std::int64_t batch) {
  Pipeline p;
  p.request = small_request(run.model);
  p.request.sizes.batch = batch;
  p.request.dtype = run.dtype;
  p.request.optimizer = run.optimizer;
  p.request.clip_norm = run.clip;
  p.request.accumulate = run.accumulate;
  if (run.vocab > 0) p.request.sizes.vocab = run.vocab;
  p.request.sizes.dropout = 0;  // whose masks differ from rank to rank
  p.measure = false;
  p.on_demand = run.on_demand;
  p.planning.deterministic = true;
  p.running.steps = 5;
  p.running.threads = 1;
  p.files.data = "fresh";
  p.running.fresh_batches = true;
  return p;
}

struct Left {
  std::vector<double> losses;
  std::vector<std::byte> weights;
  runtime::RankReport ranks;
  Bytes planned;
};

Result<Left> finish(Pipeline p) {
  Left out;
  p.running.on_end = [&](runtime::Executor& executor) -> Status {
    const ir::Graph& graph = executor.graph();
    for (std::size_t v = 0; v < graph.values.size(); ++v) {
      if (graph.values[v].kind != ir::ValueKind::kWeight) continue;
      PLIMSOLL_TRY(const std::vector<std::byte> bytes, executor.read(ValueId(v)));
      out.weights.insert(out.weights.end(), bytes.begin(), bytes.end());
    }
    return {};
  };
  PLIMSOLL_RETURN_IF_ERROR(advance(p, Stage::kRun));
  out.losses = p.report.losses;
  if (p.report.ranks) out.ranks = *p.report.ranks;
  if (p.report.planned_peak) out.planned = *p.report.planned_peak;
  return out;
}

std::vector<Left> run_ranks(const RankRun& run) {
  std::vector<Left> out(static_cast<std::size_t>(run.ranks));
  std::mutex lock;
  dist::run_thread_ranks(run.ranks, [&](const std::shared_ptr<dist::Communicator>& comm) {
    Pipeline p = pipeline_of(run, run.batch);
    p.ranks.communicator = comm;
    p.ranks.bucket = run.bucket;
    p.ranks.fixed_order = run.fixed;
    p.ranks.shard = *parse_shard(run.shard);
    p.ranks.dense_tables = run.dense_tables;
    p.ranks.sync_batch_norm = run.sync_batch_norm;
    p.running.part = {comm->rank(), comm->size()};
    auto left = finish(std::move(p));
    const std::scoped_lock held(lock);
    ASSERT_TRUE(left.has_value()) << left.error().message;
    out[static_cast<std::size_t>(comm->rank())] = std::move(*left);
  });
  return out;
}

Left run_joined(const RankRun& run) {
  Pipeline p = pipeline_of(run, run.micro_batches ? run.batch : run.batch * run.ranks);
  if (run.micro_batches) p.request.accumulate = run.ranks * run.accumulate;
  auto left = finish(std::move(p));
  EXPECT_TRUE(left.has_value()) << left.error().message;
  return left ? *left : Left{};
}

void expect_same(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    EXPECT_NEAR(a[i], b[i], tolerance * std::max(1.0, std::abs(a[i]))) << "step " << i;
}

void expect_ranks_train_as_one(const RankRun& run, double tolerance) {
  const Left joined = run_joined(run);
  const std::vector<Left> ranks = run_ranks(run);
  EXPECT_GT(std::abs(joined.losses.front() - joined.losses.back()), 1e-6);
  for (const Left& rank : ranks) {
    expect_same(rank.losses, joined.losses, tolerance);
    // bit for bit; where each has a part, other ones
    const bool same = !run.shard.ends_with("weights") || &rank == ranks.data();
    EXPECT_EQ(rank.weights == ranks[0].weights, same);
  }
}

TEST(Ranks, TrainAsOneInFp32) {
  expect_ranks_train_as_one({.model = "mlp"}, 2e-6);
  expect_ranks_train_as_one({.model = "mlp", .ranks = 4, .batch = 2}, 2e-6);
  expect_ranks_train_as_one({.model = "gpt2", .batch = 1}, 2e-5);
}

TEST(Ranks, TrainAsOneInFp64) {
  expect_ranks_train_as_one({.model = "mlp", .dtype = "fp64"}, 1e-10);
  expect_ranks_train_as_one({.model = "mlp", .dtype = "fp64", .ranks = 3, .clip = 0.01}, 1e-10);
}

// What each rank keeps a part of, by name, with buckets of which one holds several tensors.
class SharedState : public testing::TestWithParam<std::tuple<const char*, int>> {};

TEST_P(SharedState, TrainsAsWholeStateDoes) {
  const auto [shard, ranks] = GetParam();
  for (const char* optimizer : {"adamw", "momentum", "sgd"}) {
    expect_ranks_train_as_one({.model = "mlp",
                               .dtype = "fp64",
                               .ranks = ranks,
                               .bucket = Bytes(2000),
                               .optimizer = optimizer,
                               .shard = shard},
                              1e-10);
  }
  expect_ranks_train_as_one(
      {.model = "mlp", .dtype = "fp64", .ranks = ranks, .clip = 0.01, .shard = shard}, 1e-10);
  expect_ranks_train_as_one({.model = "mlp", .ranks = ranks, .on_demand = true, .shard = shard},
                            2e-6);
  expect_ranks_train_as_one({.model = "mlp",
                             .dtype = "fp64",
                             .ranks = ranks,
                             .batch = 2,
                             .bucket = Bytes(2000),
                             .micro_batches = true,
                             .shard = shard,
                             .accumulate = 2},
                            1e-10);
}

INSTANTIATE_TEST_SUITE_P(Parts, SharedState,
                         testing::Combine(testing::Values("optimizer", "optimizer,gradients",
                                                          "optimizer,gradients,weights"),
                                          testing::Values(2, 3)));

TEST(Ranks, ShareTheStateOfATransformer) {
  for (const char* shard : {"optimizer,gradients", "optimizer,gradients,weights"})
    expect_ranks_train_as_one({.model = "gpt2", .batch = 1, .shard = shard}, 2e-5);
}

// The table of tokens is several pieces, in steps that clip, that add up micro-batches, and that
// run without a plan.
TEST(Ranks, ShareALargeTensorInPieces) {
  for (const char* shard : {"optimizer,gradients", "optimizer,gradients,weights"}) {
    const RankRun run{
        .model = "gpt2", .dtype = "fp64", .batch = 2, .bucket = Bytes(16 << 10), .shard = shard};
    expect_ranks_train_as_one(run, 1e-10);
    if (run.shard.ends_with("weights")) continue;
    RankRun clipped = run;
    clipped.clip = 0.01;
    expect_ranks_train_as_one(clipped, 1e-10);
    RankRun accumulated = run;
    accumulated.micro_batches = true;
    accumulated.accumulate = 2;
    expect_ranks_train_as_one(accumulated, 1e-10);
    RankRun unplanned = run;
    unplanned.on_demand = true;
    expect_ranks_train_as_one(unplanned, 1e-10);
  }
}

TEST(Ranks, GiveTheSameBitsSharedAndWhole) {
  const RankRun whole{.model = "mlp", .ranks = 3};
  RankRun shared = whole;
  shared.shard = "optimizer";
  EXPECT_EQ(run_ranks(whole)[0].weights, run_ranks(shared)[0].weights);
  // the gradient of the table in pieces of rows, too
  const RankRun table{.model = "gpt2", .batch = 1};
  RankRun pieces = table;
  pieces.shard = "optimizer";
  pieces.bucket = Bytes(4 << 10);
  EXPECT_EQ(run_ranks(table)[0].weights, run_ranks(pieces)[0].weights);
}

// Moments become a part of themselves, and weights too; the rest stays.
TEST(Ranks, HoldLessWhenTheyShareState) {
  const auto plan_of = [](const char* shard, int ranks) {
    Pipeline p = pipeline_of({.model = "gpt2"}, 1);
    p.ranks.communicator = dist::make_paper_communicator(ranks);
    p.ranks.shard = *parse_shard(shard);
    const Status planned = advance(p, Stage::kPlanned);
    EXPECT_TRUE(planned.has_value()) << planned.error().message;
    EXPECT_TRUE(plan::check_plan(p.planned.plan).ok());
    return std::move(p.planned.plan);
  };
  const auto state = [](const plan::Plan& plan, ir::ValueKind kind) {
    Bytes out;
    for (const ir::Value& value : plan.graph.values) {
      if (value.kind == kind) out += ir::bytes_of(value.type);
    }
    return static_cast<double>(out.value);
  };
  const plan::Plan whole = plan_of("", 4);
  const plan::Plan moments = plan_of("optimizer,gradients", 4);
  const plan::Plan all = plan_of("optimizer,gradients,weights", 4);
  using enum ir::ValueKind;
  EXPECT_NEAR(state(moments, kOptimizer) / state(whole, kOptimizer), 0.25, 0.01);
  EXPECT_NEAR(state(all, kOptimizer) / state(whole, kOptimizer), 0.25, 0.01);
  EXPECT_NEAR(state(all, kWeight) / state(whole, kWeight), 0.25, 0.01);
  EXPECT_LT(moments.arena_bytes(), whole.arena_bytes());
  EXPECT_LT(all.arena_bytes(), moments.arena_bytes());
}

// On a link of 1 GB/s and 10 us, of which ten latencies are 100 kB.
TEST(Ranks, SumSmallerBucketsWhereTheyShareState) {
  const schedule::Link link{1e9, 10e-6};
  const auto bucket = [&](std::int64_t elements, bool shares) {
    ops::Builder b("sums");
    const ops::Var x = b.input("x", {ir::DType::kF32, {elements}, {}});
    const ir::Graph graph = *b.finish({ops::all_reduce(x, {2, true, true})});
    Ranks ranks;
    ranks.communicator = dist::make_paper_communicator(2);
    return bucket_for(ranks, link, graph, shares).value;
  };
  EXPECT_EQ(bucket(80'000'000, true), 10'000'000);
  EXPECT_EQ(bucket(80'000'000, false), 53'333'334);  // a sixth
  EXPECT_EQ(bucket(500'000, true), 100'000);
  EXPECT_EQ(bucket(1000, true), bucket(1000, false));
}

// Tables so large that of their gradients the rows of a step are sent (rewrite/sparse_gradients.h):
// gpt2's is its last layer too, bert's is not.
class SparseTables : public testing::TestWithParam<const char*> {};

TEST_P(SparseTables, TrainAsOneWithFewerBytesOrInFewerLateOnes) {
  const RankRun run{.model = GetParam(), .dtype = "fp64", .batch = 1, .vocab = 4000};
  expect_ranks_train_as_one(run, 1e-10);
  RankRun clipped = run;
  clipped.clip = 0.01;
  expect_ranks_train_as_one(clipped, 1e-10);
  RankRun unplanned = run;
  unplanned.on_demand = true;
  expect_ranks_train_as_one(unplanned, 1e-10);
  RankRun together = run;
  together.bucket = Bytes(1 << 30);
  RankRun dense = together;
  dense.dense_tables = true;
  const std::vector<Left> rows = run_ranks(together);
  const std::vector<Left> whole = run_ranks(dense);
  EXPECT_EQ(rows[0].ranks.messages, whole[0].ranks.messages + 2);
  EXPECT_LE(rows[0].ranks.wire_bytes, 1.01 * whole[0].ranks.wire_bytes);
  expect_same(rows[0].losses, whole[0].losses, 1e-10);
}

TEST_P(SparseTables, GiveTheSameBitsInAFixedOrderWhateverTheBuckets) {
  const RankRun all{
      .model = GetParam(), .ranks = 3, .batch = 1, .bucket = Bytes(1 << 30), .vocab = 4000};
  RankRun each = all;
  each.bucket = Bytes(1);
  const std::vector<Left> a = run_ranks(all);
  const std::vector<Left> b = run_ranks(each);
  EXPECT_EQ(a[0].weights, b[0].weights);
  EXPECT_EQ(a[0].losses, b[0].losses);
}

INSTANTIATE_TEST_SUITE_P(Models, SparseTables, testing::Values("gpt2", "bert"));

class SlowRanks : public testing::TestWithParam<std::tuple<const char*, int, const char*>> {};

TEST_P(SlowRanks, TrainAsOneInFp64) {
  const auto [model, ranks, shard] = GetParam();
  expect_ranks_train_as_one({.model = model,
                             .dtype = "fp64",
                             .ranks = ranks,
                             .batch = 2,
                             .micro_batches = std::string(model) == "resnet18",
                             .shard = shard},
                            1e-10);
}

INSTANTIATE_TEST_SUITE_P(
    Models, SlowRanks,
    testing::Combine(testing::Values("mlp", "resnet18", "gpt2", "bert"), testing::Values(2, 4),
                     testing::Values("", "optimizer,gradients", "optimizer,gradients,weights")));

// Batch norm takes the statistics of a rank's own examples, as micro-batches do.
TEST(Ranks, NormaliseByTheirOwnExamples) {
  expect_ranks_train_as_one(
      {.model = "resnet18", .batch = 2, .micro_batches = true, .optimizer = "sgd"}, 2e-4);
}

// Those of all ranks, when they are asked to.
TEST(Ranks, NormaliseByAllExamples) {
  const RankRun run{.model = "resnet18",
                    .dtype = "fp64",
                    .batch = 2,
                    .optimizer = "momentum",
                    .sync_batch_norm = true};
  expect_ranks_train_as_one(run, 1e-10);
  RankRun three = run;
  three.dtype = "fp32";
  three.ranks = 3;
  expect_ranks_train_as_one(three, 2e-3);
}

TEST(Ranks, TrainAsOneInAnyOrder) {
  expect_ranks_train_as_one({.model = "mlp", .ranks = 3, .fixed = false}, 2e-6);
}

TEST(Ranks, GiveTheSameBitsInAFixedOrderWhateverTheBuckets) {
  const RankRun all{.model = "mlp", .ranks = 3, .bucket = Bytes(1 << 30), .fixed = true};
  RankRun each = all;
  each.bucket = Bytes(1);
  const std::vector<Left> a = run_ranks(all);
  const std::vector<Left> b = run_ranks(each);
  EXPECT_EQ(a[0].weights, b[0].weights);
  EXPECT_EQ(a[0].losses, b[0].losses);
}

TEST(Ranks, SendOneMessageForABucketAndOneForAllState) {
  const std::vector<Left> one = run_ranks({.model = "mlp", .bucket = Bytes(1 << 30)});
  EXPECT_EQ(one[0].ranks.messages, 1);
  EXPECT_EQ(one[0].ranks.start_messages, 2);  // floats, and the counter of steps
  const std::vector<Left> each = run_ranks({.model = "mlp", .bucket = Bytes(1)});
  EXPECT_GT(each[0].ranks.messages, 4);
}

TEST(Ranks, TrainWithoutAPlanToo) {
  RankRun run{.model = "mlp"};
  const std::vector<Left> planned = run_ranks(run);
  run.on_demand = true;
  const std::vector<Left> on_demand = run_ranks(run);
  expect_same(on_demand[0].losses, planned[0].losses, 1e-7);
}

TEST(Ranks, PlanBucketsSideBySideAndCollectivesOnAStreamOfTheirOwn) {
  for (const auto& [model, budget] : std::vector<std::pair<std::string, std::string>>{
           {"mlp", ""}, {"gpt2", ""}, {"resnet18", ""}, {"gpt2", "95%"}}) {
    Pipeline p = pipeline_of({.model = model, .optimizer = "sgd"}, 8);
    p.ranks.communicator = dist::make_paper_communicator(4);
    p.planning.budget = budget;
    p.planning.deterministic = true;
    if (model == "gpt2") p.request.sizes.layers = 2;
    const Status planned = advance(p, Stage::kPlanned);
    ASSERT_TRUE(planned.has_value()) << model << ": " << planned.error().message;
    const plan::Plan& plan = p.planned.plan;
    EXPECT_TRUE(plan::check_plan(plan).ok());
    EXPECT_LE(p.planned.summary.bound_seconds, plan.predicted_seconds) << model;
    std::size_t sums = 0, together = 0, apart = 0;
    for (const plan::PlanStep& step : plan.steps) {
      const bool collective =
          step.node.valid() && ops::is_collective(plan.graph.node(step.node).op);
      EXPECT_EQ(step.stream == 1, collective);
      if (!collective) continue;
      ++sums;
      for (std::size_t i = 0; i < step.outputs.size(); ++i) {
        // in place: what is summed is not copied
        EXPECT_EQ(step.inputs[i].buffer, step.outputs[i].buffer) << model;
        if (i == 0) continue;
        const plan::PlanBuffer& before = plan.buffer(step.outputs[i - 1].buffer);
        const bool behind = plan::place_of(plan, step.outputs[i]) == before.offset + before.bytes;
        ++(behind ? together : apart);
      }
    }
    EXPECT_GE(sums, 1U);
    EXPECT_LE(sums, 9U) << model;
    EXPECT_GT(together, 0U) << model;
    EXPECT_EQ(apart, 0U) << model;
  }
}

// Each rank of several cards computes what a card alone would: the same rewrites for its kernels.
TEST(Ranks, OnCardsGetTheGraphOfACard) {
  for (const char* shard : {"", "optimizer,gradients"}) {
    Pipeline p = pipeline_of({.model = "gpt2"}, 8);
    p.device = "h200";
    p.ranks.communicator = dist::make_paper_communicator(2);
    p.ranks.fixed_order = false;
    p.ranks.shard = parse_shard(shard).value();
    const Status planned = advance(p, Stage::kPlanned);
    ASSERT_TRUE(planned) << planned.error().message;
    const plan::Plan& plan = p.planned.plan;
    EXPECT_TRUE(plan::check_plan(plan).ok());
    std::int64_t sums = 0;
    std::int64_t grouped = 0;
    for (const ir::Node& node : plan.graph.nodes) {
      sums += ops::is_collective(node.op);
      grouped += node.op == "adamw_group";
    }
    EXPECT_GT(sums, 0) << shard;
    EXPECT_EQ(grouped > 0, *shard == '\0') << "parts of ranks are updated as they lie; " << shard;
  }
}

TEST(Ranks, AreNamedWhenTheyRunAnotherModel) {
  std::mutex lock;
  dist::run_thread_ranks(3, [&](const std::shared_ptr<dist::Communicator>& comm) {
    Ranks ranks;
    ranks.communicator = comm;
    const Status same = agree_on_model(ranks, "mlp", "a graph");
    const Status other = agree_on_model(ranks, comm->rank() == 2 ? "gpt2" : "mlp",
                                        comm->rank() == 2 ? "another" : "a graph");
    const std::scoped_lock held(lock);
    EXPECT_TRUE(same.has_value());
    ASSERT_FALSE(other.has_value());
    EXPECT_NE(other.error().message.find("rank 2 runs 'gpt2'"), std::string::npos);
  });
}

TEST(Ranks, RefuseAPlanOfSeveralInOneProcess) {
  Pipeline p = pipeline_of({.model = "mlp"}, 8);
  p.ranks.communicator = dist::make_paper_communicator(4);
  ASSERT_TRUE(advance(p, Stage::kPlanned).has_value());
  const auto report = runtime::run_plan(std::move(p.planned.plan), {});
  ASSERT_FALSE(report.has_value());
  EXPECT_NE(report.error().message.find("run it with --ranks 4"), std::string::npos)
      << report.error().message;
}

TEST(Ranks, HaveTracesOfTheirOwn) {
  EXPECT_EQ(name_for_rank("out/run.jsonl", 3), "out/run.3.jsonl");
  EXPECT_EQ(name_for_rank("run", 0), "run.0");
}

}  // namespace
}  // namespace plimsoll::api
