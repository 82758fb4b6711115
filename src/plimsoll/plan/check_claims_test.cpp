// Every field of a plan file that follows from its steps, forged one at a time: the reader or the
// checker refuses.
#include "plimsoll/plan/check_claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plimsoll/base/json.h"
#include "plimsoll/plan/check_plan.h"
#include "plimsoll/plan/check_views.h"
#include "plimsoll/plan/make_plan.h"
#include "plimsoll/plan/plan_file.h"
#include "plimsoll/plan/streams.h"
#include "plimsoll/plan/testing/random_graph.h"
#include "plimsoll/schedule/fit.h"

namespace plimsoll::plan {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Plan claimed_plan(const ir::Graph& graph, const schedule::Remedies* remedies = nullptr) {
  const auto mapped = schedule::make_graph_workload(graph, {});
  EXPECT_TRUE(mapped);
  schedule::Schedule schedule = schedule::keep_all(mapped->workload);
  if (remedies != nullptr) {
    schedule::FitOptions how;
    how.remedies = *remedies;
    how.budget = Bytes(schedule.peak_bytes.value * 8 / 10);
    how.deterministic = true;
    how.deadline_seconds = 0.01;
    how.threads = 1;
    if (auto fitted = schedule::fit(mapped->workload, how)) schedule = std::move(fitted->schedule);
  }
  return make_plan(graph, *mapped, schedule, {}).value();
}

// "" when the file is refused or found wrong.
std::string accepted(const json& file) {
  const auto plan = parse_plan(json_text(file));
  if (!plan || !check_plan(*plan).ok()) return "";
  return "accepted";
}

// What no reader can recompute; see check_claims.h.
bool is_the_makers_word(const std::string& path) {
  for (const char* free : {"/environment/", "/graph", "/budget_bytes"}) {
    if (path.starts_with(free)) return true;
  }
  // Another place is as good, as long as it is free: that the replay finds out
  // (check_plan_test.cpp).
  return path.ends_with("/seconds") || path.ends_with("/offset");
}

// Whether both nodes lie in their inputs: which of two such nodes a step copies is the maker's
// choice, and a plan that copies the other one is right too.
bool are_views(const ir::Graph& graph, const json& a, const json& b) {
  for (const json* index : {&a, &b}) {
    const auto n = index->get<std::size_t>();
    if (n >= graph.nodes.size() || pieces_of_view(graph, graph.nodes[n], 0).empty()) return false;
  }
  return true;
}

void forge_every_leaf(const ir::Graph& graph, const json& file, const json& node,
                      const json::json_pointer& at, int& forged) {
  if (node.is_structured()) {
    for (const auto& [key, child] : node.items()) {
      if (node.is_array())
        forge_every_leaf(graph, file, child, at / static_cast<std::size_t>(std::stoul(key)),
                         forged);
      if (node.is_object()) forge_every_leaf(graph, file, child, at / key, forged);
    }
    return;
  }
  if (is_the_makers_word(at.to_string())) return;
  std::vector<json> lies;
  if (node.is_number_integer())
    lies = {node.get<std::int64_t>() + 1, node.get<std::int64_t>() - 1,
            node.get<std::int64_t>() + 64};
  if (node.is_number_float()) lies = {node.get<double>() * 1.01, node.get<double>() / 1.01};
  if (node.is_boolean()) lies = {!node.get<bool>()};
  if (node.is_string()) lies = {node.get<std::string>() + "x", ""};
  if (node.is_null()) lies = {json::array({0, 0})};
  for (const json& lie : lies) {
    if (at.to_string().ends_with("/node") && are_views(graph, node, lie)) continue;
    json other = file;
    other[at] = lie;
    EXPECT_EQ(accepted(other), "") << at.to_string() << ": " << node << " forged as " << lie;
    ++forged;
  }
}

TEST(CheckClaims, EveryForgedFieldOfAPlanFileIsRefused) {
  for (const std::uint64_t seed : {1, 4, 9}) {
    SCOPED_TRACE(seed);
    const ir::Graph graph = random_graph(seed);
    const json file = parse_json(to_json(claimed_plan(graph))).value();
    ASSERT_EQ(accepted(file), "accepted");
    int forged = 0;
    forge_every_leaf(graph, file, file, json::json_pointer(), forged);
    EXPECT_GT(forged, 100);
  }
}

TEST(CheckClaims, ALowerBoundThatNobodyCanProveIsRefused) {
  Plan plan = claimed_plan(random_graph(2));
  ASSERT_TRUE(check_plan(plan).ok());
  // A plan that wastes memory, and says that nothing smaller exists.
  PlanBuffer& moved = plan.buffers[static_cast<std::size_t>(
      std::max_element(
          plan.buffers.begin(), plan.buffers.end(),
          [](const PlanBuffer& a, const PlanBuffer& b) { return a.offset < b.offset; }) -
      plan.buffers.begin())];
  moved.offset = moved.offset + Bytes(4096);
  plan.arenas[0].bytes = Bytes(moved.offset.value) + moved.bytes;
  plan.proof.lower_bound = plan.arenas[0].bytes;
  plan.proof.optimal = true;
  EXPECT_THAT(check_plan(plan).problems, Contains(HasSubstr("can be proven")));
  // Longer lifetimes would raise the load, and so the bound.
  for (PlanBuffer& buffer : plan.buffers)
    buffer.lifetime = {Step(0), Step(static_cast<std::int64_t>(plan.steps.size()))};
  EXPECT_THAT(check_plan(plan).problems, Contains(HasSubstr("by its steps it is in")));
}

TEST(CheckClaims, PlansOfSeveralStreamsAreRightAndTheirBoundsAreProven) {
  int above_load = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Plan plan = claimed_plan(random_graph(seed));
    ASSERT_TRUE(spread_over_streams(plan, {.streams = 3}));
    EXPECT_THAT(check_plan(plan).problems, IsEmpty()) << "seed " << seed;
    above_load += plan.proof.lower_bound > plan.proof.load;
    if (plan.proof.lower_bound == plan.proof.load) continue;
    plan.proof.lower_bound += Bytes(64);
    plan.proof.optimal = plan.proof.lower_bound == plan.arena_bytes();
    EXPECT_THAT(check_plan(plan).problems, Contains(HasSubstr("the proof's lower bound")))
        << "seed " << seed;
  }
  EXPECT_GT(above_load, 5);
}

// How many of the plans move something.
int expect_right_with_remedies(std::uint64_t first, std::uint64_t last) {
  const schedule::Remedies all{.recompute = true, .swap = true, .encode = true};
  int moved = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const Plan plan = claimed_plan(random_graph(seed), &all);
    EXPECT_THAT(check_plan(plan).problems, IsEmpty()) << "seed " << seed;
    moved += std::any_of(plan.steps.begin(), plan.steps.end(),
                         [](const PlanStep& step) { return step.kind != StepKind::kCompute; });
  }
  return moved;
}

TEST(CheckClaims, PlansThatSwapAndRecomputeAreRight) {
  EXPECT_GT(expect_right_with_remedies(1, 4), 0);
}
TEST(SlowCheckClaims, PlansThatSwapAndRecomputeAreRight) {
  EXPECT_GT(expect_right_with_remedies(5, 64), 15);
}

}  // namespace
}  // namespace plimsoll::plan
