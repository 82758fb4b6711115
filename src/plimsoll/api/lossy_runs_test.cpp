// Training with activations stored in lossy forms: what each loses is measured and small, and the
// loss still falls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/plan/check_plan.h"
#include "plimsoll/runtime/initial_content.h"

namespace plimsoll::api {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kLossySteps = 5;

struct Form {
  const char* option;
  const char* name;
  double
      // rms error against the rms of the values, at most: one step of the form over sqrt(6)
      relative;
};
constexpr Form kForms[] = {{"fp16", "fp16", 0x1p-11},
                           {"bf16", "bf16", 0x1p-8},
                           {"fp8", "fp8-e4m3", 0x1p-4},
                           {"int8", "int8", 0x1p-5}};

ModelRequest small(const std::string& name) {
  ModelRequest out;
  out.model = name;
  out.threads = 1;
  out.optimizer = "adam";
  out.sizes = {.batch = 8, .image = 64, .width = 8, .classes = 10};
  if (name == "gpt2")
    out.sizes = {.batch = 4, .seq = 16, .width = 64, .layers = 2, .heads = 2, .vocab = 100};
  return out;
}

// The same batch every step, so that the loss has something to fall on.
Status feed_first_batch(runtime::Executor& executor, int) {
  const ir::Graph& graph = executor.graph();
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ir::Value& value = graph.values[v];
    if (value.kind == ir::ValueKind::kInput)
      PLIMSOLL_RETURN_IF_ERROR(runtime::fill_source(executor, ValueId(v), 1, 0));
  }
  return {};
}

Result<RunReport> run_with(const plan::Plan& plan, int threads) {
  RunOptions how;
  how.steps = kLossySteps;
  how.threads = threads;
  how.feed = feed_first_batch;
  return run_plan(plan, how);
}

Result<plan::Plan> encode_all(Pipeline& prepared, const std::string& forms) {
  PlanOptions options;
  options.strategy = "encode";
  options.compare = false;
  if (!forms.empty()) {
    PLIMSOLL_TRY(options.lossy, schedule::parse_lossy_forms(forms));
    options.remedies.lossy = true;
  }
  PLIMSOLL_TRY(PlannedGraph planned, plan_model(prepared, options));
  return std::move(planned.plan);
}

class LossyRuns : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    request_ = small(GetParam());
    auto prepared = prepare_model(request_, "cpu");
    ASSERT_TRUE(prepared) << prepared.error().message;
    prepared_ = std::move(*prepared);
  }
  plan::Plan plan_with(const std::string& forms) {
    auto plan = encode_all(prepared_, forms);
    EXPECT_TRUE(plan) << plan.error().message;
    return plan ? std::move(*plan) : plan::Plan{};
  }

  ModelRequest request_;
  Pipeline prepared_;
};

TEST_P(LossyRuns, EveryFormTrainsAndSaysWhatItLost) {
  const auto exact = run_with(plan_with(""), 1);
  ASSERT_TRUE(exact) << exact.error().message;
  for (const Form& form : kForms) {
    SCOPED_TRACE(form.option);
    const plan::Plan plan = plan_with(form.option);
    EXPECT_THAT(plan::lossy_forms_of(plan), ElementsAre(form.name));
    const auto run = run_with(plan, 1);
    ASSERT_TRUE(run) << run.error().message;
    EXPECT_LT(run->losses.back(), run->losses.front());
    EXPECT_NE(run->losses, exact->losses);
    // The forward pass of the first step is untouched; later ones go where slightly other gradients
    // led.
    EXPECT_EQ(run->losses.front(), exact->losses.front());
    EXPECT_NEAR(run->losses.back(), exact->losses.back(),
                0.1 * std::fabs(exact->losses.front() - exact->losses.back()));
    const auto forms = runtime::by_form(run->encoded);
    const auto found =
        std::find_if(forms.begin(), forms.end(),
                     [&](const runtime::FormReport& report) { return report.form == form.name; });
    ASSERT_NE(found, forms.end());
    EXPECT_GE(found->activations.size(), 3U);
    EXPECT_GT(found->largest_error, 0);
    EXPECT_GT(found->relative_error, form.relative / 100);
    EXPECT_LT(found->relative_error, form.relative);
    for (const runtime::EncodedActivation& activation : found->activations)
      EXPECT_LE(rms_error(activation), activation.largest_error) << activation.tensor;
    EXPECT_EQ(found->overflow, 0_bytes);
    EXPECT_LE(found->used, found->planned);
    EXPECT_LT(found->used.value * 19, found->plain.value * 10);  // less than 1 / 1.9 of it
    ::testing::Test::RecordProperty(
        form.option, fmt::format("max {} rms {} loss {}", found->largest_error, found->rms_error,
                                 run->losses.back()));
  }
}

TEST_P(LossyRuns, AreTheSameAgain) {
  const plan::Plan plan = plan_with("int8");
  const auto one = run_with(plan, 1);
  const auto again = run_with(plan, 1);
  ASSERT_TRUE(one) << one.error().message;
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(one->losses, again->losses);
  const auto error = [](const RunReport& report) {
    return runtime::by_form(report.encoded).back().rms_error;
  };
  EXPECT_EQ(error(*one), error(*again));
}

INSTANTIATE_TEST_SUITE_P(Models, LossyRuns, ::testing::Values("alexnet", "gpt2"));

TEST(LossyPlans, WaitInTheSmallestFormThatIsAllowed) {
  const ModelRequest request = small("alexnet");
  auto prepared = prepare_model(request, "cpu");
  ASSERT_TRUE(prepared) << prepared.error().message;
  std::vector<std::int64_t> held;
  for (const char* forms : {"", "fp16", "fp16,bf16,int8"}) {
    const auto plan = encode_all(*prepared, forms);
    ASSERT_TRUE(plan) << plan.error().message;
    held.push_back(plan::held_for_backward(*plan).bytes.value);
  }
  EXPECT_GT(held[0], held[1]);
  EXPECT_GT(held[1], held[2]);
}

TEST(LossyPlans, TheCheckerRefusesAWrongOrUnknownCodec) {
  const ModelRequest request = small("gpt2");
  auto prepared = prepare_model(request, "cpu");
  ASSERT_TRUE(prepared) << prepared.error().message;
  const auto plan = encode_all(*prepared, "bf16");
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_TRUE(plan::check_plan(*plan).ok());
  plan::Plan other = *plan;
  const auto decode =
      std::find_if(other.steps.begin(), other.steps.end(),
                   [](const plan::PlanStep& step) { return step.kind == plan::StepKind::kDecode; });
  ASSERT_NE(decode, other.steps.end());
  decode->codec = "fp16";
  EXPECT_THAT(plan::check_plan(other).problems,
              Contains(HasSubstr("decode by 'fp16' of what 'bf16' encoded")));
  decode->codec = "fp4";
  EXPECT_THAT(plan::check_plan(other).problems,
              Contains(HasSubstr("decode by 'fp4', which is no codec")));
  decode->codec = "crumbs";
  EXPECT_THAT(plan::check_plan(other).problems,
              Contains(HasSubstr("codec 'crumbs' stores uint8, 'transformer")));
}

TEST(LossyForms, AreReadFromACommaList) {
  EXPECT_THAT(*schedule::parse_lossy_forms("fp8,int8,fp8-e4m3"), ElementsAre("fp8-e4m3", "int8"));
  for (const char* wrong : {"", ",", "fp4", "sparse", "fp16,,int8"}) {
    const auto forms = schedule::parse_lossy_forms(wrong);
    ASSERT_FALSE(forms) << wrong;
    EXPECT_EQ(forms.error().code, ErrorCode::kUsage);
    EXPECT_THAT(forms.error().message, HasSubstr("fp16, bf16, fp8-e4m3, fp8-e5m2, int8"));
  }
}

}  // namespace
}  // namespace plimsoll::api
