// What runs hold, asked of the memory and the allocator, and the faults that must show there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/runtime/outside_bytes.h"
#include "plimsoll/runtime/testing/trace_departures.h"

namespace plimsoll::api {
namespace {

using device::TouchedBytes;
using runtime::Measured;

constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kMiB = 1 << 20;

// The objects that oneDNN makes for a call, OpenMP's for its threads, the list of losses: some KiB,
// none of 4 KiB. docs/planning.md and tools/demo.sh state it.
constexpr std::int64_t kAllowance = 64 << 10;

class MeasuredRun : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!runtime::OutsideBytes::available())
      GTEST_SKIP() << "sanitizers bring an allocator of their own";
  }
};
class SlowMeasuredRun : public MeasuredRun {};

ModelRequest request_of(const char* model, const model::ModelOptions& sizes, int threads = 1) {
  ModelRequest out;
  out.model = model;
  out.sizes = sizes;
  out.threads = threads;
  return out;
}

plan::Plan plan_of(const ModelRequest& request, PlanOptions options = {}) {
  auto prepared = prepare_model(request, "cpu");
  EXPECT_TRUE(prepared) << prepared.error().message;
  options.compare = false;
  options.deterministic = true;
  auto planned = plan_model(*prepared, options);
  EXPECT_TRUE(planned) << planned.error().message;
  return planned ? std::move(planned->plan) : plan::Plan{};
}

RunOptions measuring(int threads = 1) {
  RunOptions how;
  how.steps = 2;
  how.threads = threads;
  how.measure = true;
  return how;
}

Measured measured(const plan::Plan& plan, const RunOptions& how) {
  const auto report = run_plan(plan, how);
  EXPECT_TRUE(report) << report.error().message;
  if (!report || !report->measured) return {};
  EXPECT_EQ(report->peak, report->measured->touched + report->measured->outside);
  return *report->measured;
}

// Where the highest buffer begins: less than that the run cannot have touched and still be right.
Offset highest_begin(const plan::Plan& plan) {
  Offset out;
  for (const plan::PlanBuffer& buffer : plan.buffers) {
    if (buffer.arena == 0) out = std::max(out, buffer.offset);
  }
  return out;
}

Measured expect_as_planned(const plan::Plan& plan, const RunOptions& how) {
  const Measured seen = measured(plan, how);
  EXPECT_LE(seen.touched, plan.arena_bytes());
  EXPECT_GT(seen.touched.value, highest_begin(plan).value);
  EXPECT_LE(seen.outside.value, kAllowance);
  EXPECT_EQ(seen.large, 0) << "allocations of 4 KiB or more";
  return seen;
}

const std::vector<std::pair<const char*, model::ModelOptions>>& small_models() {
  static const model::ModelOptions image{.batch = 2, .image = 64};
  static const model::ModelOptions text{
      .batch = 2, .seq = 64, .width = 128, .layers = 1, .vocab = 1000};
  static const std::vector<std::pair<const char*, model::ModelOptions>> out{
      {"mlp", {}},
      {"alexnet", image},
      {"resnet18", image},
      {"mobilenet", image},
      {"lstm", {.batch = 2, .seq = 4, .width = 64}},
      {"bert", text},
      {"gpt2", text},
      {"unet", {.batch = 1, .image = 32, .width = 16}}};
  return out;
}

// One model on so many threads, the next on the other number of one and two, and so on.
void expect_models_as_planned(int threads) {
  for (const auto& [model, sizes] : small_models()) {
    SCOPED_TRACE(fmt::format("{} on {} threads", model, threads));
    expect_as_planned(plan_of(request_of(model, sizes, threads)), measuring(threads));
    threads = 3 - threads;
  }
}
TEST_F(MeasuredRun, ModelsTouchTheirArenaAndAllocateNothingLargeOutsideIt) {
  expect_models_as_planned(1);
}
TEST_F(SlowMeasuredRun, ModelsTouchTheirArenaAndAllocateNothingLargeOutsideIt) {
  expect_models_as_planned(2);
}

// Plans with every remedy that are found in a moment: searched ones of a small model, classic ones
// of a larger.
std::vector<std::pair<std::string, plan::Plan>> search_plans_with_remedies() {
  std::vector<std::pair<std::string, plan::Plan>> out;
  PlanOptions options;
  options.budget = "80%";
  const ModelRequest small = request_of("mlp", {.batch = 512, .width = 64});
  options.remedies = {.recompute = false, .swap = true};
  out.emplace_back("swap", plan_of(small, options));
  options.remedies = {.recompute = true, .swap = true, .encode = true};
  out.emplace_back("all remedies", plan_of(small, options));
  const ModelRequest larger =
      request_of("resnet18", {.batch = 4, .image = 64, .width = 16, .classes = 10});
  options.budget = "200%";
  for (const char* strategy : {"sqrt", "drop-cheap", "encode"}) {
    options.strategy = strategy;
    out.emplace_back(strategy, plan_of(larger, options));
  }
  return out;
}

// Searched once for all tests.
const std::vector<std::pair<std::string, plan::Plan>>& plans_with_remedies() {
  static const auto out = search_plans_with_remedies();
  return out;
}

bool has_step(const plan::Plan& plan, plan::StepKind kind) {
  return std::any_of(plan.steps.begin(), plan.steps.end(),
                     [kind](const plan::PlanStep& step) { return step.kind == kind; });
}

TEST_F(MeasuredRun, BudgetsSwapAndEncodingsAllocateNothingLargeEither) {
  std::set<plan::StepKind> ran;
  for (const auto& [name, plan] : plans_with_remedies()) {
    SCOPED_TRACE(name);
    const Measured seen = expect_as_planned(plan, measuring());
    EXPECT_EQ(seen.host.value > 0, has_step(plan, plan::StepKind::kCopyOut))
        << "what was swapped out lies in the host's arena";
    for (const plan::PlanStep& step : plan.steps) ran.insert(step.kind);
  }
  for (const plan::StepKind kind : {plan::StepKind::kRecompute, plan::StepKind::kCopyOut,
                                    plan::StepKind::kCopyIn, plan::StepKind::kEncode}) {
    EXPECT_TRUE(ran.contains(kind)) << plan::name(kind);
  }
}

TEST_F(MeasuredRun, EncodedActivationsThatOverflowWaitInMemoryTakenAtBinding) {
  PlanOptions options;
  options.budget = "200%";
  options.strategy = "encode";
  options.remedies.encode = true;
  const plan::Plan plan = plan_of(request_of("alexnet", {.batch = 2, .image = 64}), options);
  RunOptions how = measuring();
  // Weights that leave no zero behind a ReLU: no encoded map fits its room.
  how.on_start = [](runtime::Executor& executor) -> Status {
    const ir::Graph& graph = executor.graph();
    for (std::size_t v = 0; v < graph.values.size(); ++v) {
      if (graph.values[v].kind != ir::ValueKind::kWeight ||
          graph.values[v].type.dtype != ir::DType::kF32)
        continue;
      PLIMSOLL_RETURN_IF_ERROR(
          executor.write(ValueId(v), [](std::span<std::byte> memory) -> Status {
            const float small = 1e-4F;
            for (std::size_t at = 0; at + sizeof small <= memory.size(); at += sizeof small)
              std::memcpy(memory.data() + at, &small, sizeof small);
            return {};
          }));
    }
    return {};
  };
  how.feed = [](runtime::Executor& executor, int) -> Status {
    const ir::Graph& graph = executor.graph();
    for (std::size_t v = 0; v < graph.values.size(); ++v) {
      if (graph.values[v].kind != ir::ValueKind::kInput) continue;
      const int value = graph.values[v].type.dtype == ir::DType::kF32 ? 0x3f : 0;
      PLIMSOLL_RETURN_IF_ERROR(
          executor.write(ValueId(v), [=](std::span<std::byte> memory) -> Status {
            std::memset(memory.data(), value, memory.size());
            return {};
          }));
    }
    return {};
  };
  const auto report = run_plan(plan, how);
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_GT(report->overflow.value, 0);
  EXPECT_LE(report->measured->outside.value, kAllowance);
  EXPECT_EQ(report->measured->large, 0);
}

TEST_F(MeasuredRun, BothMethodsSeeTheSameArena) {
  if (!TouchedBytes::can_watch_pages())
    GTEST_SKIP() << "no userfaultfd with asynchronous write protection here";
  for (const auto& [model, sizes] : {small_models()[0], small_models()[2], small_models()[6]}) {
    plan::Plan plan = plan_of(request_of(model, sizes));
    const Bytes used = plan.arena_bytes();
    RunOptions how = measuring();
    how.space_behind = Bytes(8 * kMiB + 64);
    how.measure_by = TouchedBytes::Method::kPattern;
    const Measured exact = measured(plan, how);
    how.measure_by = TouchedBytes::Method::kPages;
    const Measured pages = measured(plan, how);
    EXPECT_LE(exact.touched, used) << model;
    EXPECT_GT(exact.touched, used - Bytes(64 + kPage)) << model;
    EXPECT_GE(pages.touched, exact.touched) << model;
    EXPECT_LT(pages.touched, exact.touched + Bytes(kPage)) << model;
  }
}

// Does something of its own beside the kernel's work.
class Faulty final : public kernels::Kernel {
 public:
  Faulty(std::unique_ptr<kernels::Kernel> kernel,
         std::function<void(const kernels::Arguments&)> fault)
      : kernel_(std::move(kernel)), fault_(std::move(fault)) {}
  Bytes scratch() const override { return kernel_->scratch(); }
  bool in_place() const override { return kernel_->in_place(); }
  void run(const kernels::Arguments& arguments) override {
    kernel_->run(arguments);
    fault_(arguments);
  }

 private:
  std::unique_ptr<kernels::Kernel> kernel_;
  std::function<void(const kernels::Arguments&)> fault_;
};

RunOptions with_fault(const std::string& op,
                      const std::function<void(const kernels::Arguments&)>& fault) {
  RunOptions how = measuring();
  how.wrap_kernel =
      [op, fault](const ir::Node& node,
                  std::unique_ptr<kernels::Kernel> kernel) -> std::unique_ptr<kernels::Kernel> {
    if (node.op != op) return kernel;
    return std::make_unique<Faulty>(std::move(kernel), fault);
  };
  return how;
}

TEST_F(MeasuredRun, AKernelThatAllocatesShows) {
  const plan::Plan plan = plan_of(request_of("mlp", {}));
  const Measured clean = measured(plan, measuring());
  const Measured by_malloc =
      measured(plan, with_fault("cross_entropy", [](const kernels::Arguments&) {
                 const std::vector<char> hidden(3 * kMiB);
                 asm volatile("" : : "r"(hidden.data()) : "memory");
               }));
  EXPECT_GE(by_malloc.outside, Bytes(3 * kMiB));
  EXPECT_LE(by_malloc.outside, clean.outside + Bytes(3 * kMiB + kPage))
      << "freed in every step: the peak is one of them";
  EXPECT_EQ(by_malloc.large, 2);
  EXPECT_EQ(by_malloc.touched, clean.touched);
  const Measured by_mmap = measured(
      plan, with_fault("cross_entropy", [](const kernels::Arguments&) {
        (void)::mmap(nullptr, 5 * kMiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      }));
  EXPECT_GE(by_mmap.outside, Bytes(10 * kMiB)) << "never unmapped: two steps hold two of them";
  EXPECT_LE(by_mmap.outside, clean.outside + Bytes(10 * kMiB + kPage));
}

TEST_F(MeasuredRun, APlanThatClaimsMemoryNobodyUsesIsRefused) {
  plan::Plan plan = plan_of(request_of("mlp", {}));
  plan.arenas.front().bytes += Bytes(4 * kMiB);
  const auto report = run_plan(plan, measuring());
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message, ::testing::HasSubstr("the buffers in it reach"));
}

TEST_F(MeasuredRun, AKernelThatWritesBeyondItsBufferShows) {
  const plan::Plan plan = plan_of(request_of("mlp", {}));
  const Bytes used = measured(plan, measuring()).touched;
  for (const TouchedBytes::Method method :
       {TouchedBytes::Method::kPages, TouchedBytes::Method::kPattern}) {
    if (method == TouchedBytes::Method::kPages && !TouchedBytes::can_watch_pages()) continue;
    RunOptions how;
    std::byte* begin = nullptr;
    how = with_fault("cross_entropy", [&](const kernels::Arguments&) {
      begin[used.value + 2 * kMiB] = std::byte{1};
    });
    how.measure_by = method;
    how.space_behind = Bytes(4 * kMiB);
    how.on_start = [&](runtime::Executor& executor) -> Status {
      begin = executor.arenas().front().data();
      return {};
    };
    const Measured seen = measured(plan, how);
    EXPECT_GT(seen.touched, used + Bytes(2 * kMiB));
    EXPECT_LE(seen.touched, used + Bytes(2 * kMiB + kPage));
  }
}

// The highest resident set since it was last reset, from the kernel's own books.
Bytes resident_peak() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return Bytes(std::stoll(line.substr(6)) * 1024);
  }
  return Bytes(0);
}

bool reset_resident_peak() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << "5";
  clear.close();
  return clear.good();
}

// What passes by malloc and mmap (stacks, calls made by hand) has no place to hide in a second
// count that knows neither.
TEST_F(MeasuredRun, TheKernelCountsNoMoreResidentBytes) {
  const plan::Plan plan = plan_of(request_of("resnet18", {.batch = 2, .image = 64}, 2));
  RunOptions how = measuring(2);
  Bytes before;
  how.on_start = [&](runtime::Executor&) -> Status {
    // Weights were written by now: what is resident holds some of the arena already.
    if (!reset_resident_peak()) return fail(ErrorCode::kDevice, "no /proc/self/clear_refs");
    before = resident_peak();
    return {};
  };
  const auto report = run_plan(plan, how);
  if (!report) GTEST_SKIP() << report.error().message;
  const Bytes grown = resident_peak() - before;
  constexpr std::int64_t kCodePages = 16 * kMiB;  // of libraries, first used in a step
  EXPECT_LE(grown.value, report->peak.value + kCodePages);
}

TEST_F(MeasuredRun, OnDemandEverythingIsOutside) {
  const ModelRequest request = request_of("mlp", {});
  auto prepared = prepare_model(request, "cpu");
  ASSERT_TRUE(prepared) << prepared.error().message;
  RunOptions timed = measuring();
  timed.measure = false;
  const auto counted = run_on_demand(prepared->model.graph, timed);
  const auto seen = run_on_demand(prepared->model.graph, measuring());
  ASSERT_TRUE(counted && seen);
  EXPECT_FALSE(counted->measured);
  ASSERT_TRUE(seen->measured);
  EXPECT_EQ(seen->measured->touched, Bytes(0));
  EXPECT_GE(seen->peak, counted->peak) << "a pool rounds up what it takes";
}

TEST_F(MeasuredRun, TheTraceOfARunFollowsItsPlan) {
  std::vector<std::pair<std::string, plan::Plan>> plans = plans_with_remedies();
  for (const auto& [model, sizes] : {small_models()[2], small_models()[6]}) {
    plans.emplace_back(model, plan_of(request_of(model, sizes)));
  }
  for (const auto& [name, plan] : plans) {
    SCOPED_TRACE(name);
    trace::Trace trace;
    RunOptions how;
    how.steps = 2;
    how.threads = 1;
    how.trace = &trace;
    ASSERT_TRUE(run_plan(plan, how));
    EXPECT_EQ(runtime::trace_departures(plan, trace), std::vector<std::string>{});
    EXPECT_GT(2 * trace::peak_live_bytes(trace).value, plan.arena_bytes().value);
  }
}

std::size_t heap_bytes() {
  const struct mallinfo2 now = mallinfo2();
  return now.uordblks + now.hblkhd;
}

TEST(Allocations, ATrainingGraphTakesLessThan2KiBANode) {
  if (!runtime::OutsideBytes::available())
    GTEST_SKIP() << "sanitizers bring an allocator of their own";
  for (const auto& [model, sizes] :
       {std::pair<const char*, model::ModelOptions>{"resnet", {.batch = 32, .depth = 1000}},
        {"gpt2", {.batch = 1, .seq = 256, .layers = 96}}}) {
    const ModelRequest request = request_of(model, sizes);
    const std::size_t before = heap_bytes();
    const auto loaded = load_model(request);
    ASSERT_TRUE(loaded) << loaded.error().message;
    const std::size_t bytes = heap_bytes() - before;
    EXPECT_LT(bytes, 2000 * loaded->graph.nodes.size()) << model;
    RecordProperty(model, std::to_string(bytes / loaded->graph.nodes.size()));
  }
}

}  // namespace
}  // namespace plimsoll::api
