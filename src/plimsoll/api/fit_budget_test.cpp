#include "plimsoll/plan/fit/fit_budget.h"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "plimsoll/api/largest_batch.h"
#include "plimsoll/api/planning.h"

namespace plimsoll::api {
namespace {

// Many small layers with large activations: enough to give up.
ModelRequest small_model() {
  ModelRequest request;
  request.model = "mlp";
  request.sizes.batch = 256;
  request.sizes.image = 8;
  request.sizes.width = 64;
  request.sizes.layers = 5;
  request.optimizer = "sgd";
  request.threads = 1;
  return request;
}

Pipeline& prepared() {
  static Pipeline model = [] {
    auto made = prepare_model(small_model(), "cpu");
    EXPECT_TRUE(made) << made.error().message;
    return std::move(*made);
  }();
  return model;
}

PlanOptions counted(std::string budget) {
  PlanOptions options;
  options.budget = std::move(budget);
  options.deterministic = true;
  options.compare = false;
  return options;
}

// Searched once for all tests.
const Result<PlannedGraph>& within(const char* budget) {
  static std::map<std::string, Result<PlannedGraph>> found;
  const auto place = found.find(budget);
  if (place != found.end()) return place->second;
  return found.emplace(budget, plan_model(prepared(), counted(budget))).first->second;
}

constexpr const char* kBudgets[] = {"90%", "80%", "70%"};

TEST(FitBudget, KeepsThePackedArenaInsideTheBudget) {
  for (const char* budget : kBudgets) {
    const auto& planned = within(budget);
    ASSERT_TRUE(planned) << budget << ": " << planned.error().message;
    EXPECT_LE(planned->plan.arena_bytes(), planned->plan.budget) << budget;
    EXPECT_GE(planned->plan.predicted_seconds, planned->summary.no_recompute_seconds * (1 - 1e-9));
    EXPECT_LE(planned->summary.bound_seconds, planned->plan.predicted_seconds);
  }
}

// By the clock, which says at once that time is up: what is constructed before the search has to
// do.
TEST(FitBudget, KeepsThePackedArenaInsideTheBudgetWithoutTime) {
  for (const char* budget : {"90%", "70%"}) {
    PlanOptions options = counted(budget);
    options.deterministic = false;
    options.deadline_seconds = 0;
    const auto planned = plan_model(prepared(), options);
    ASSERT_TRUE(planned) << budget << ": " << planned.error().message;
    EXPECT_LE(planned->plan.arena_bytes(), planned->plan.budget) << budget;
  }
}

TEST(FitBudget, IsMonotoneInTheBudgetWhenDeterministic) {
  const PlannedGraph* larger = nullptr;
  for (const char* budget : kBudgets) {
    const auto& planned = within(budget);
    ASSERT_TRUE(planned) << budget << ": " << planned.error().message;
    if (larger != nullptr) {
      EXPECT_LE(planned->plan.arena_bytes(), larger->plan.arena_bytes()) << budget;
      EXPECT_GE(planned->plan.predicted_seconds, larger->plan.predicted_seconds) << budget;
    }
    larger = &*planned;
  }
}

TEST(FitBudget, SaysDoesNotFitOnlyBelowTheProvenLowerBound) {
  PlanOptions options = counted("100KB");
  std::optional<PlanFailure> told;
  options.on_failure = [&](const PlanFailure& failure) { told = failure; };
  const auto planned = plan_model(prepared(), options);
  ASSERT_FALSE(planned);
  EXPECT_EQ(planned.error().code, ErrorCode::kDoesNotFit);
  ASSERT_TRUE(told);
  EXPECT_GT(told->lower_bound, told->budget);
  EXPECT_GE(told->smallest, told->lower_bound);
  EXPECT_LE(told->smallest, told->no_recompute);
  EXPECT_FALSE(told->limiting.empty());
  options.budget = std::to_string(told->lower_bound.value);
  const auto above = plan_model(prepared(), options);
  EXPECT_TRUE(above || above.error().code == ErrorCode::kNoAnswer);
}

// Where everything may be swapped there is a plan down to the lower bound itself, however slow the
// copies are.
TEST(FitBudget, FindsAPlanAtTheLowerBoundIfItMaySwap) {
  auto model = prepare_model(small_model(), "cpu");
  ASSERT_TRUE(model) << model.error().message;
  for (const double bytes_per_second : {1e6, 1e12}) {
    schedule::CopyRates& copies = model->profile.copies;
    copies.out_bytes_per_second = copies.in_bytes_per_second = bytes_per_second;
    PlanOptions options = counted("1KB");
    options.remedies.swap = true;
    std::optional<PlanFailure> told;
    options.on_failure = [&](const PlanFailure& failure) { told = failure; };
    ASSERT_FALSE(plan_model(*model, options));
    ASSERT_TRUE(told);
    options.budget = std::to_string(told->lower_bound.value);
    const auto planned = plan_model(*model, options);
    ASSERT_TRUE(planned) << bytes_per_second << ": " << planned.error().message;
    EXPECT_LE(planned->plan.arena_bytes(), told->lower_bound);
  }
}

TEST(FitBudget, LessMemoryForMoreTimeAndNeverMoreTimeThanAllowed) {
  Bytes before = Bytes::max();
  for (const double slowdown : {0.0, 0.05, 1.0}) {
    PlanOptions options = counted("");
    options.slowdown = slowdown;
    const auto planned = plan_model(prepared(), options);
    ASSERT_TRUE(planned) << slowdown << ": " << planned.error().message;
    EXPECT_LE(planned->plan.predicted_seconds,
              planned->summary.no_recompute_seconds * (1 + slowdown) * (1 + 1e-6));
    EXPECT_LE(planned->plan.arena_bytes(), before) << slowdown;
    EXPECT_EQ(planned->plan.budget, planned->plan.arena_bytes());
    before = planned->plan.arena_bytes();
  }
  EXPECT_LT(before, within("90%")->plan.arena_bytes());
}

TEST(FitBudget, ASlowdownAndABudgetAreTwoQuestions) {
  PlanRequest request;
  request.budget = "80%";
  request.slowdown = "5%";
  EXPECT_EQ(plan_options(request).error().code, ErrorCode::kUsage);
  request.budget.clear();
  EXPECT_EQ(plan_options(request)->slowdown, 0.05);
  for (const char* wrong : {"5", "-5%", "x%", "nan%"}) {
    request.slowdown = wrong;
    EXPECT_FALSE(plan_options(request)) << wrong;
  }
}

TEST(FitBudget, SweepsAMonotoneCurve) {
  const auto curve = sweep_model(prepared(), counted(""));
  ASSERT_TRUE(curve) << curve.error().message;
  ASSERT_GT(curve->size(), 2u);
  for (std::size_t i = 1; i < curve->size(); ++i) {
    EXPECT_LT((*curve)[i].plan.arena_bytes(), (*curve)[i - 1].plan.arena_bytes());
    EXPECT_GE((*curve)[i].plan.predicted_seconds, (*curve)[i - 1].plan.predicted_seconds);
  }
}

// A small batch: every one between it and its double is a search.
TEST(LargestBatch, FitsWhatItSaysAndMoreThanKeepingEverythingWould) {
  ModelRequest request = small_model();
  request.sizes.batch = 16;
  auto model = prepare_model(request, "cpu");
  ASSERT_TRUE(model) << model.error().message;
  PlanOptions options = counted("");
  const auto kept = plan_model(*model, options);
  ASSERT_TRUE(kept);
  options.budget = std::to_string(kept->plan.arena_bytes().value);
  const auto largest = largest_batch(request, "cpu", options);
  ASSERT_TRUE(largest) << largest.error().message;
  EXPECT_GE(largest->batch, 16);
  // Nothing cuts a counted search: the next batch was tried.
  EXPECT_EQ(largest->failed, largest->batch + 1);
  EXPECT_TRUE(largest->next == NextBatch::kProven || largest->next == NextBatch::kNotFound);
  EXPECT_LE(largest->planned.plan.arena_bytes(), kept->plan.arena_bytes());
}

TEST(LargestBatch, RefusesABudgetInPerCent) {
  PlanOptions options;
  options.budget = "50%";
  const auto largest = largest_batch(small_model(), "cpu", options);
  ASSERT_FALSE(largest);
  EXPECT_EQ(largest.error().code, ErrorCode::kUsage);
}

TEST(ClassicFigure, ShrinksFromRowToRowAndStaysWithinTheAllowedOverhead) {
  const auto figure = figure_of(prepared(), counted(""));
  ASSERT_TRUE(figure) << figure.error().message;
  ASSERT_EQ(figure->rows.size(), 6u);
  EXPECT_EQ(figure->rows[0].name, "none");
  EXPECT_LT(figure->rows[1].feature_maps, figure->rows[0].feature_maps);
  EXPECT_LT(figure->rows[2].feature_maps, figure->rows[1].feature_maps);
  const report::FigureRow& own = figure->rows.back();
  EXPECT_EQ(own.name, "auto");
  EXPECT_LT(own.feature_maps, figure->rows[2].feature_maps);
  EXPECT_LE(own.overhead, report::kAllowedOverhead);
  EXPECT_NE(to_svg(*figure).find("auto"), std::string::npos);
  EXPECT_NE(to_json(*figure).find("feature_map_bytes"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::api
