// The bars of planning: how long it takes, and what a planned step costs beside one without a plan.
//
//   plan_bench [planning|stepping] [ROUNDS] [MODEL]
//
// planning: seconds from a laid-out graph to a checked plan, the fastest of ROUNDS; wall time and
// the
//           processor's. The processor's is held against the bar: a busy neighbour does not change
//           it.
// stepping: fastest step of each strategy; the two take turns, round after round.
// Leaves with 1 when a bar is missed.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "plimsoll/api/pipeline.h"

namespace {

using namespace plimsoll;

double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

api::ModelRequest request_for(const std::string& model, const model::ModelOptions& sizes) {
  api::ModelRequest out;
  out.model = model;
  out.sizes = sizes;
  return out;
}

struct PlanningBar {
  std::string model;
  model::ModelOptions sizes;
  double seconds;
};

bool measure_planning(const PlanningBar& bar, int rounds) {
  const api::ModelRequest request = request_for(bar.model, bar.sizes);
  auto prepared = api::prepare_model(request, "cpu");
  if (!prepared) return fmt::print("{}: {}\n", bar.model, prepared.error().message), false;
  double wall = std::numeric_limits<double>::max();
  double processor = wall;
  std::size_t steps = 0;
  for (int round = 0; round < rounds; ++round) {
    const double begin = processor_seconds();
    const auto planned = api::plan_model(*prepared, {});
    processor = std::min(processor, processor_seconds() - begin);
    if (!planned) return fmt::print("{}: {}\n", bar.model, planned.error().message), false;
    wall = std::min(wall, planned->summary.plan_seconds);
    steps = planned->plan.steps.size();
  }
  const bool met = processor <= bar.seconds;
  fmt::print("{:<24} {:>6} steps  {:.3f} s of processor, {:.3f} s wall, bar {:.1f} s  {}\n",
             prepared->model.graph.name, steps, processor, wall, bar.seconds,
             met ? "met" : "MISSED");
  return met;
}

double fastest(const Result<api::RunReport>& report, double before) {
  if (!report) return fmt::print("{}\n", report.error().message), before;
  return std::min(before,
                  *std::min_element(report->step_seconds.begin(), report->step_seconds.end()));
}

bool measure_stepping(const std::string& model, const model::ModelOptions& sizes, int rounds) {
  constexpr double kTolerance = 1.02;  // two fastest steps of one program differ by as much
  const api::ModelRequest request = request_for(model, sizes);
  auto prepared = api::prepare_model(request, "cpu");
  if (!prepared) return fmt::print("{}: {}\n", model, prepared.error().message), false;
  const auto planned = api::plan_model(*prepared, {});
  if (!planned) return fmt::print("{}: {}\n", model, planned.error().message), false;
  api::RunOptions how;
  how.steps = 3;
  double with_plan = std::numeric_limits<double>::max();
  double without = with_plan;
  for (int round = 0; round < rounds; ++round) {
    with_plan = fastest(runtime::run_plan(planned->plan, how), with_plan);
    without = fastest(runtime::run_on_demand(prepared->model.graph, how), without);
  }
  const bool met = with_plan <= without * kTolerance;
  fmt::print("{:<24} planned {:.4f} s, on demand {:.4f} s, ratio {:.3f}  {}\n",
             prepared->model.graph.name, with_plan, without, with_plan / without,
             met ? "met" : "MISSED");
  return met;
}

}  // namespace

int main(int count, char** words) {
  const std::string what = count > 1 ? words[1] : "";
  const int rounds = count > 2 ? std::max(1, std::atoi(words[2])) : 3;
  const std::string only = count > 3 ? words[3] : "";
  bool met = true;
  if (what != "stepping") {
    const std::vector<PlanningBar> bars = {{"resnet50", {.batch = 32}, 0.2},
                                           {"gpt2", {.batch = 8, .seq = 1024}, 0.3},
                                           {"gpt2", {.batch = 1, .layers = 96}, 2},
                                           {"resnet", {.batch = 1, .depth = 1000}, 2}};
    for (const PlanningBar& bar : bars) {
      if (only.empty() || only == bar.model) met = measure_planning(bar, rounds) && met;
    }
  }
  if (what != "planning") {
    const std::vector<std::pair<std::string, model::ModelOptions>> models = {
        {"resnet50", {.batch = 4}},
        {"alexnet", {.batch = 16}},
        {"gpt2", {.batch = 1, .seq = 128}},
        {"bert", {.batch = 1, .seq = 128}}};
    for (const auto& [name, sizes] : models) {
      if (only.empty() || only == name) met = measure_stepping(name, sizes, rounds) && met;
    }
  }
  return met ? 0 : 1;
}
