// Whole models on a device that behaves as a GPU does (device/fake), with the CPU's kernels: the
// same pipeline, plans, staging, streams and reports as on a card, and the same bits as on the CPU.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/api/run_model.h"
#include "plimsoll/api/testing/small_run.h"
#include "plimsoll/base/file.h"
#include "plimsoll/plan/plan_file.h"
#include "plimsoll/profile/measure_operators.h"

namespace plimsoll::api {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<kernels::Backend> gpu_like(std::uint64_t seed) {
  return kernels::make_fake_backend({.seed = seed, .longest_delay = 200});
}

void expect_bits_of_the_cpu(const std::string& model, const std::vector<SmallRunOptions>& ways) {
  const auto expected = run_small(model, {});
  ASSERT_TRUE(expected) << expected.error().message;
  for (std::size_t way = 0; way < ways.size(); ++way) {
    SCOPED_TRACE(way);
    const auto ran = run_small(model, ways[way]);
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_TRUE(ran->left == expected->left);
    EXPECT_EQ(ran->report.losses, expected->report.losses);
    EXPECT_EQ(ran->report.device, "fake");
  }
}

class OnAGpuLikeDevice : public ::testing::TestWithParam<const char*> {};

TEST_P(OnAGpuLikeDevice, TrainsWithTheBitsOfTheCpu) {
  expect_bits_of_the_cpu(GetParam(), {{.backend = gpu_like(1)},
                                      {.backend = gpu_like(2), .poison = true},
                                      {.backend = gpu_like(3), .on_demand = true},
                                      {.backend = gpu_like(4), .streams = 3}});
}

TEST_P(OnAGpuLikeDevice, PagesWithTheBitsOfUnlimitedMemory) {
  std::uint64_t seed = 10;
  expect_paging_keeps_the_bits(GetParam(), [&] { return gpu_like(++seed); });
}

INSTANTIATE_TEST_SUITE_P(Models, OnAGpuLikeDevice, ::testing::Values("mlp", "resnet18", "gpt2"));

TEST(DeviceRuns, RecomputingAndSwappingKeepTheBits) {
  const auto expected = run_small("gpt2", {.layers = 1});
  ASSERT_TRUE(expected) << expected.error().message;
  for (const bool swap : {false, true}) {
    const auto ran =
        run_small("gpt2", {.backend = gpu_like(5), .budget = "80%", .swap = swap, .layers = 1});
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_TRUE(ran->left == expected->left) << "swap " << swap;
    EXPECT_EQ(ran->report.host > Bytes(0), swap);
  }
}

TEST(DeviceRuns, MeasuredBytesArePlannedBytes) {
  const auto ran = run_small("mlp", {.backend = gpu_like(1), .measure = true});
  ASSERT_TRUE(ran) << ran.error().message;
  ASSERT_TRUE(ran->report.measured);
  EXPECT_EQ(ran->report.measured->touched_by(), "patterns");
  EXPECT_EQ(ran->report.measured->outside, Bytes(0));
  EXPECT_LE(ran->report.measured->touched, *ran->report.planned_peak);
  EXPECT_GT(10 * ran->report.measured->touched.value, 9 * ran->report.planned_peak->value);
}

// Kernels that read narrow numbers need no copies of them: no bits change where nothing but copies
// goes, and the norms' parameters keep their digits.
TEST(DeviceRuns, MixedPrecisionGoesWithoutCasts) {
  const auto casts_in = [](const std::shared_ptr<kernels::Backend>& backend) {
    Pipeline p;
    p.request = small_request("gpt2");
    p.request.amp = "bf16";
    p.backend = backend;
    p.measure = false;
    const Status prepared = advance(p, Stage::kPrepared);
    EXPECT_TRUE(prepared) << prepared.error().message;
    return std::count_if(p.model.graph.nodes.begin(), p.model.graph.nodes.end(),
                         [](const ir::Node& node) { return node.op == "cast"; });
  };
  EXPECT_LT(2 * casts_in(gpu_like(1)), casts_in(kernels::make_cpu_backend(1)));
  const auto expected = run_small("gpt2", {.amp = "bf16"});
  ASSERT_TRUE(expected) << expected.error().message;
  const auto ran = run_small("gpt2", {.backend = gpu_like(2), .amp = "bf16"});
  ASSERT_TRUE(ran) << ran.error().message;
  ASSERT_EQ(ran->report.losses.size(), expected->report.losses.size());
  for (std::size_t step = 0; step < ran->report.losses.size(); ++step)
    EXPECT_NEAR(ran->report.losses[step], expected->report.losses[step], 1e-2) << step;
  const auto demanded =
      run_small("gpt2", {.backend = gpu_like(3), .on_demand = true, .amp = "bf16"});
  ASSERT_TRUE(demanded) << demanded.error().message;
  EXPECT_TRUE(demanded->left == ran->left);
}

TEST(DeviceRuns, PlansForACardAreAlignedAsItWants) {
  Pipeline p;
  p.request = small_request("mlp");
  p.backend = gpu_like(1);
  p.measure = false;
  const Status planned = advance(p, Stage::kPlanned);
  ASSERT_TRUE(planned) << planned.error().message;
  EXPECT_EQ(p.planned.plan.alignment, Bytes(256));
  for (const plan::PlanBuffer& buffer : p.planned.plan.buffers)
    EXPECT_EQ(buffer.offset.value % 256, 0);
  EXPECT_EQ(p.planned.plan.environment.device, "fake");
}

// The fake device does what a card does: the host hands it addresses and waits for nothing.
TEST(DeviceRuns, LosslessEncodingsKeepTheBits) {
  const auto expected = run_small("alexnet", {});
  ASSERT_TRUE(expected) << expected.error().message;
  Pipeline p;
  p.request = small_request("alexnet");
  p.backend = gpu_like(6);
  p.measure = false;
  p.planning.strategy = "encode";
  p.running.steps = static_cast<int>(expected->report.losses.size());
  p.running.seed = p.request.seed;
  const Status planned = advance(p, Stage::kPlanned);
  ASSERT_TRUE(planned) << planned.error().message;
  std::set<std::string> forms;
  for (const plan::PlanStep& step : p.planned.plan.steps) forms.insert(step.codec);
  EXPECT_TRUE(forms.contains("sparse"));
  EXPECT_TRUE(forms.contains("crumbs") || forms.contains("nibbles"));
  const Status ran = advance(p, Stage::kRun);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(p.report.losses, expected->report.losses);
}

TEST(DeviceRuns, LossyEncodingsRoundAsTheyDoOnTheCpu) {
  const auto losses_on = [](std::shared_ptr<kernels::Backend> backend, double& error) {
    Pipeline p;
    p.request = small_request("mlp");
    p.backend = std::move(backend);
    p.measure = false;
    p.planning.strategy = "encode";
    p.planning.remedies.encode = p.planning.remedies.lossy = true;
    p.planning.lossy = {"int8"};
    p.running.steps = 3;
    const Status ran = advance(p, Stage::kRun);
    EXPECT_TRUE(ran) << ran.error().message;
    EXPECT_FALSE(p.report.encoded.empty());
    for (const runtime::EncodedActivation& one : p.report.encoded) {
      EXPECT_EQ(one.form, "int8");
      EXPECT_GT(one.used, Bytes(0));
      EXPECT_EQ(one.overflow, Bytes(0));
      error += one.squared_error;
    }
    return p.report.losses;
  };
  double on_cpu = 0;
  double on_device = 0;
  const std::vector<double> expected = losses_on(nullptr, on_cpu);
  EXPECT_EQ(losses_on(gpu_like(3), on_device), expected);
  EXPECT_EQ(on_device, on_cpu);
  EXPECT_GT(on_cpu, 0);
}

TEST(DeviceRuns, MasksOfOneBitKeepTheBits) {
  const auto expected = run_small("alexnet", {});
  ASSERT_TRUE(expected) << expected.error().message;
  Pipeline p;
  p.request = small_request("alexnet");
  p.backend = gpu_like(6);
  p.measure = false;
  p.planning.budget = "85%";
  p.planning.deterministic = true;
  p.planning.remedies = {.recompute = true, .swap = true, .encode = true};
  p.running.steps = static_cast<int>(expected->report.losses.size());
  p.running.seed = p.request.seed;
  const Status planned = advance(p, Stage::kPlanned);
  ASSERT_TRUE(planned) << planned.error().message;
  int masks = 0;
  for (const plan::PlanStep& step : p.planned.plan.steps) {
    masks +=
        step.node.valid() && p.planned.plan.graph.node(step.node).op == "positive_mask" ? 1 : 0;
  }
  EXPECT_GT(masks, 0);
  const Status ran = advance(p, Stage::kRun);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(p.report.losses, expected->report.losses);
}

// Every kernel but one operator's.
class Lacking final : public kernels::Backend {
 public:
  explicit Lacking(std::string op) : op_(std::move(op)) {}
  device::Device& device() const override { return inner_->device(); }
  Result<std::unique_ptr<kernels::Kernel>> make_kernel(const ir::Graph& graph,
                                                       NodeId node) override {
    if (graph.node(node).op == op_) return bad_input("{}: has no kernel here", op_);
    return inner_->make_kernel(graph, node);
  }
  ir::Layout weights_layout(const ir::Graph& graph, const ir::Node& node) const override {
    return inner_->weights_layout(graph, node);
  }
  std::int64_t least_channels_last() const override { return inner_->least_channels_last(); }
  std::string instruction_set() const override { return inner_->instruction_set(); }
  std::string library() const override { return inner_->library(); }

 private:
  std::string op_;
  std::shared_ptr<kernels::Backend> inner_ = gpu_like(1);
};

TEST(DeviceRuns, AnOperatorWithoutAKernelIsNamedAtPlanningTime) {
  Pipeline p;
  p.request = small_request("mlp");
  p.backend = std::make_shared<Lacking>("relu");
  p.measure = false;
  const Status planned = advance(p, Stage::kPlanned);
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().code, ErrorCode::kBadInput);
  EXPECT_THAT(planned.error().message, HasSubstr("relu"));
}

// A library with several engines for a product, the first of which it takes by itself.
class WithEngines final : public kernels::Backend {
 public:
  explicit WithEngines(std::vector<std::string> engines) : engines_(std::move(engines)) {}
  device::Device& device() const override { return inner_->device(); }
  Result<std::unique_ptr<kernels::Kernel>> make_kernel(const ir::Graph& graph,
                                                       NodeId node) override {
    PLIMSOLL_TRY(std::unique_ptr<kernels::Kernel> kernel, inner_->make_kernel(graph, node));
    if (graph.node(node).op != "linear") return kernel;
    const auto wanted = wanted_.find(ops::signature(graph, graph.node(node)));
    const std::string& engine = wanted == wanted_.end() ? engines_.front() : wanted->second;
    if (std::find(engines_.begin(), engines_.end(), engine) == engines_.end())
      return bad_input("the library has no engine '{}', which the plan names", engine);
    taken.push_back(engine);
    kernel->set_engine(engine);
    return kernel;
  }
  void use_engines(const std::map<std::string, std::string>& engines) override {
    wanted_ = engines;
  }
  ir::Layout weights_layout(const ir::Graph& graph, const ir::Node& node) const override {
    return inner_->weights_layout(graph, node);
  }
  std::int64_t least_channels_last() const override { return inner_->least_channels_last(); }
  std::string instruction_set() const override { return inner_->instruction_set(); }
  std::string library() const override { return inner_->library(); }

  std::vector<std::string> taken;

 private:
  std::vector<std::string> engines_;
  std::map<std::string, std::string> wanted_;
  std::shared_ptr<kernels::Backend> inner_ = gpu_like(1);
};

Result<plan::Plan> planned_with(const std::shared_ptr<WithEngines>& backend) {
  Pipeline p;
  p.request = small_request("mlp");
  p.backend = backend;
  p.measure = false;
  PLIMSOLL_RETURN_IF_ERROR(advance(p, Stage::kPlanned));
  return plan::parse_plan(plan::to_json(p.planned.plan));
}

TEST(Engines, APlanNamesThoseThatItsKernelsTook) {
  const auto plan = planned_with(std::make_shared<WithEngines>(std::vector<std::string>{"a", "b"}));
  ASSERT_TRUE(plan) << plan.error().message;
  std::set<std::string> products;
  for (const ir::Node& node : plan->graph.nodes)
    if (node.op == "linear") products.insert(ops::signature(plan->graph, node));
  ASSERT_EQ(plan->engines.size(), products.size());
  for (const auto& [signature, engine] : plan->engines) {
    EXPECT_TRUE(products.contains(signature));
    EXPECT_EQ(engine, "a");
  }
}

TEST(Engines, ARunTakesWhatThePlanNamesWhateverTheLibraryWouldTake) {
  const auto plan = planned_with(std::make_shared<WithEngines>(std::vector<std::string>{"a"}));
  ASSERT_TRUE(plan) << plan.error().message;
  const auto later = std::make_shared<WithEngines>(std::vector<std::string>{"newer", "a"});
  RunOptions how;
  how.backend = later;
  how.steps = 1;
  const auto ran = runtime::run_plan(*plan, how);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_THAT(later->taken, ::testing::Each("a"));
  EXPECT_EQ(later->taken.size(), plan->engines.size());
}

TEST(Engines, ARunWithoutThemIsRefusedByName) {
  const auto plan = planned_with(std::make_shared<WithEngines>(std::vector<std::string>{"a"}));
  ASSERT_TRUE(plan) << plan.error().message;
  RunOptions how;
  how.backend = std::make_shared<WithEngines>(std::vector<std::string>{"newer"});
  how.steps = 1;
  const auto ran = runtime::run_plan(*plan, how);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().code, ErrorCode::kBadInput);
  EXPECT_THAT(ran.error().message, HasSubstr("has no engine 'a', which the plan names"));
}

// A profile of the card carries them, so that a plan that was made elsewhere names them too.
TEST(Engines, TravelInTheProfileOfACard) {
  schedule::DeviceProfile profile = *schedule::shipped_profile("cpu");
  profile.card = schedule::ProfiledCard{"sm_90", "cuDNN 9", {}};
  const auto path = std::filesystem::path(testing::TempDir()) / "card_with_engines.json";
  const auto planned = [&] {
    EXPECT_TRUE(write_file(path, schedule::to_json(profile)));
    auto prepared = prepare_model(small_request("mlp"), path.string());
    EXPECT_TRUE(prepared) << prepared.error().message;
    for (const ir::Node& node : prepared->model.graph.nodes) {
      if (node.op == "linear")
        profile.card->kernels[ops::signature(prepared->model.graph, node)].engine = "cublaslt:1";
    }
    return plan_model(*prepared, {})->plan;
  };
  EXPECT_TRUE(planned().engines.empty()) << "nobody named any";
  const plan::Plan plan = planned();
  EXPECT_EQ(plan.engines.size(), profile.card->kernels.size());
  EXPECT_FALSE(plan.engines.empty());
  EXPECT_THAT(plan.engines, ::testing::Each(::testing::Pair(::testing::_, "cublaslt:1")));
}

TEST(DeviceRuns, OperatorsOfACardAreMeasuredWhereTimesMatter) {
  Pipeline p;
  p.request = small_request("mlp");
  p.backend = kernels::make_fake_backend({.memory = 64_MiB});
  const Status prepared = advance(p, Stage::kDifferentiated);
  ASSERT_TRUE(prepared) << prepared.error().message;
  schedule::DeviceProfile profile;
  profile::MeasureOptions how;
  how.backend = p.backend.get();
  const Status measured = profile::measure_operators(p.model.graph, how, profile);
  ASSERT_TRUE(measured) << measured.error().message;
  for (const ir::Node& node : p.model.graph.nodes)
    EXPECT_TRUE(profile.measured.contains(ops::signature(p.model.graph, node))) << node.op;
}

TEST(DeviceRuns, TheDeviceIsNamedRightOrRefusedInWords) {
  EXPECT_EQ(kernels::parse_cuda("cuda").value(), 0);
  EXPECT_EQ(kernels::parse_cuda("cuda:3").value(), 3);
  EXPECT_EQ(kernels::parse_cuda("cpu").value(), std::nullopt);
  EXPECT_EQ(kernels::parse_cuda("cuda.json").value(), std::nullopt);
  for (const char* wrong : {"cuda:", "cuda:x", "cuda:-1", "cuda:1x"})
    EXPECT_EQ(kernels::parse_cuda(wrong).error().code, ErrorCode::kUsage) << wrong;
  RunRequest request;
  request.model = small_request("mlp");
  request.planning.device = "h200";
  EXPECT_EQ(run_model(request).error().code, ErrorCode::kDevice);
  request.planning.device = "cpu";
  request.model.tf32 = true;
  EXPECT_EQ(run_model(request).error().code, ErrorCode::kUsage);
}

// The graph, the alignment and the scratch of a card that is not here, from its profile.
TEST(PaperCard, PlansWhatTheCardItselfWould) {
  constexpr Bytes kMuchScratch(
      64 << 20);  // no hole between the tensors of the model has room for it
  schedule::DeviceProfile profile = *schedule::shipped_profile("cpu");
  profile.card = schedule::ProfiledCard{"sm_90 tf32", "cuDNN 9", {}};
  const auto path = std::filesystem::path(testing::TempDir()) / "card.json";
  const auto planned = [&](bool tf32) {
    EXPECT_TRUE(write_file(path, schedule::to_json(profile)));
    ModelRequest request = small_request("gpt2");
    request.optimizer = "adamw";
    request.tf32 = tf32;
    auto prepared = prepare_model(request, path.string());
    EXPECT_TRUE(prepared) << prepared.error().message;
    for (const ir::Node& node : prepared->model.graph.nodes) {
      const std::string signature = ops::signature(prepared->model.graph, node);
      if (node.op == "linear") profile.card->kernels[signature] = {kMuchScratch, true};
    }
    auto out = plan_model(*prepared, {});
    EXPECT_TRUE(out) << out.error().message;
    return out->plan;
  };
  const plan::Plan without = planned(true);
  ASSERT_FALSE(profile.card->kernels.empty());
  const plan::Plan with = planned(true);
  EXPECT_LT(without.arena_bytes(), kMuchScratch);
  EXPECT_GT(with.arena_bytes(), kMuchScratch);
  EXPECT_EQ(with.environment.instruction_set, "sm_90 tf32");
  // Products that are not rounded were not measured: nothing is known of their kernels.
  EXPECT_EQ(planned(false).arena_bytes(), without.arena_bytes());
  EXPECT_TRUE(std::any_of(with.graph.nodes.begin(), with.graph.nodes.end(),
                          [](const ir::Node& node) { return node.op == "adamw_group"; }));
  for (const plan::PlanBuffer& buffer : with.buffers) EXPECT_EQ(buffer.offset.value % 256, 0);
}

}  // namespace
}  // namespace plimsoll::api
