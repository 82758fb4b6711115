#include "plimsoll/api/plan_set.h"

#include <gtest/gtest.h>

#include "plimsoll/api/testing/same_bits.h"
#include "plimsoll/base/file.h"
#include "plimsoll/plan/plan_set_files.h"

namespace plimsoll::api {
namespace {

auto plans_of_mlp(const SizeGrid& sizes) {
  ModelRequest request;
  request.model = "mlp";
  request.train = false;
  request.threads = 1;
  return plan_set_for(request, "cpu", {}, sizes);
}

TEST(PlanSet, SizesAreARangeOfOneOption) {
  const auto sizes = parse_sizes("batch=1..64");
  ASSERT_TRUE(sizes) << sizes.error().message;
  EXPECT_EQ(sizes->options(), "batch");
  EXPECT_EQ(sizes->members(), 64);
  EXPECT_EQ(sizes->largest(), std::vector<std::int64_t>{64});
  for (const char* wrong : {"", "batch", "batch=", "batch=3", "batch=3..", "batch=0..3",
                            "batch=4..3", "width=1..2", "batch=1..2x", "batch=1..999999999",
                            "batch=1..2,", "batch=1..2,batch=1..2", "batch=1..100,seq=1..100"}) {
    EXPECT_FALSE(parse_sizes(wrong)) << wrong;
  }
}

TEST(PlanSet, SizesOfTwoOptionsAreAllTheirCombinations) {
  const auto sizes = parse_sizes("batch=1..2,seq=7..9");
  ASSERT_TRUE(sizes) << sizes.error().message;
  EXPECT_EQ(sizes->options(), "batch,seq");
  ASSERT_EQ(sizes->members(), 6);
  EXPECT_EQ(sizes->at(0), (std::vector<std::int64_t>{1, 7}));
  EXPECT_EQ(sizes->at(2), (std::vector<std::int64_t>{1, 9}));
  EXPECT_EQ(sizes->at(3), (std::vector<std::int64_t>{2, 7}));
  EXPECT_EQ(sizes->largest(), (std::vector<std::int64_t>{2, 9}));
}

TEST(PlanSet, SmallerSizesRunAtTheOffsetsOfTheLargest) {
  for (const bool train : {true, false}) {
    SCOPED_TRACE(train);
    ModelRequest request;
    request.model = "resnet18";
    request.sizes = {.image = 32, .width = 8, .classes = 10};
    request.train = train;
    request.threads = 1;
    const auto plans = plan_set_for(request, "cpu", {}, {"batch", 1, 5});
    ASSERT_TRUE(plans) << plans.error().message;
    ASSERT_EQ(plans->size(), 5u);
    const plan::Plan& largest = plans->back().plan;
    int shared = 0;
    for (const PlanSetMember& member : *plans) {
      EXPECT_LE(member.plan.arena_bytes(), largest.arena_bytes()) << member.sizes.front();
      if (!member.shared()) continue;
      ++shared;
      for (std::size_t b = 0; b < largest.buffers.size(); ++b)
        EXPECT_EQ(member.plan.buffers[b].offset, largest.buffers[b].offset);
      const auto expected = run_on_demand_for(member.plan.graph, 1);
      ASSERT_TRUE(expected) << expected.error().message;
      const auto got = run_planned_for(member.plan, 1);
      ASSERT_TRUE(got) << got.error().message;
      EXPECT_TRUE(*got == *expected) << member.sizes.front();
    }
    EXPECT_GE(shared, 4);
  }
}

TEST(PlanSet, AnIndexGivesThePlanOfASizeWithoutPlanning) {
  const SizeGrid sizes{"batch", 2, 4};
  const auto plans = plans_of_mlp(sizes);
  ASSERT_TRUE(plans) << plans.error().message;
  const std::string index = testing::TempDir() + "plan_set_test.json";
  ASSERT_TRUE(plan::write_plan_set(index, sizes, *plans));
  EXPECT_TRUE(*read_plan(index, {.batch = 3}) == (*plans)[1].plan);
  EXPECT_TRUE(*read_plan(index, {}) == plans->back().plan);
  EXPECT_EQ(read_plan(index, {.batch = 9}).error().code, ErrorCode::kUsage);
  const auto got = run_planned_for(*read_plan(index, {.batch = 3}), 1);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(*got == *run_on_demand_for((*plans)[1].plan.graph, 1));
}

TEST(PlanSet, IsWrittenWholeOrNotAtAll) {
  const SizeGrid sizes{"batch", 2, 4};
  const auto plans = plans_of_mlp(sizes);
  ASSERT_TRUE(plans) << plans.error().message;
  const std::filesystem::path folder = testing::TempDir() + "plan_set_not_at_all";
  // the index, written last, has no place
  std::filesystem::create_directories(folder / "mlp.json");
  EXPECT_FALSE(plan::write_plan_set((folder / "mlp.json").string(), sizes, *plans));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1)
      << "members without an index";
  std::filesystem::remove_all(folder);
}

// The same steps by an executor of its own for every size, the state carried from one to the next.
LeftBehind step_by_step(const std::vector<plan::Plan>& plans, int steps) {
  std::vector<std::vector<std::byte>> states;
  LeftBehind out;
  for (int step = 0; step < steps; ++step) {
    RunOptions how;
    how.steps = 1;
    how.first_step = step;
    how.threads = 1;
    how.on_start = [&](runtime::Executor& executor) -> Status {
      for (std::size_t v = 0, s = 0; v < executor.graph().values.size() && !states.empty(); ++v) {
        if (!ir::is_persistent(executor.graph().values[v].kind)) continue;
        PLIMSOLL_RETURN_IF_ERROR(executor.write(ValueId(v), states[s]));
        ++s;
      }
      return {};
    };
    how.on_end = [&](runtime::Executor& executor) -> Status {
      out = left_behind(executor);
      states.assign(out.begin() + static_cast<std::ptrdiff_t>(executor.graph().outputs.size()),
                    out.end());
      return {};
    };
    const auto report =
        run_on_demand(plans[static_cast<std::size_t>(step) % plans.size()].graph, how);
    EXPECT_TRUE(report) << report.error().message;
  }
  return out;
}

TEST(PlanSet, ARunChangesItsSizeEveryStepInOneArena) {
  struct Case {
    const char* model;
    model::ModelOptions fixed;
    SizeGrid sizes;
  };
  const std::vector<Case> cases{
      {"mlp", {}, {"batch", 1, 4}},
      {"resnet18", {.image = 32, .width = 8, .classes = 10}, {"batch", 1, 4}},
      {"gpt2", {.seq = 16, .width = 32, .layers = 2, .heads = 2, .vocab = 100}, {"batch", 1, 4}},
      {"gpt2", {.batch = 2, .width = 32, .layers = 2, .heads = 2, .vocab = 100}, {"seq", 5, 8}},
      {"gpt2",
       {.width = 32, .layers = 2, .heads = 2, .vocab = 100},
       SizeGrid({{"batch", 1, 2}, {"seq", 5, 7}})},
      {"lstm", {.batch = 2, .width = 8, .layers = 2, .classes = 20}, {"seq", 2, 6}},
      {"lstm",
       {.width = 8, .layers = 1, .classes = 20},
       SizeGrid({{"batch", 1, 3}, {"seq", 2, 3}})}};
  for (const Case& one : cases) {
    SCOPED_TRACE(fmt::format("{} {}", one.model, one.sizes.options()));
    ModelRequest request;
    request.model = one.model;
    request.threads = 1;
    request.sizes = one.fixed;
    const auto set = plan_set_for(request, "cpu", {}, one.sizes);
    ASSERT_TRUE(set) << set.error().message;
    std::vector<plan::Plan> plans;
    for (const PlanSetMember& member : *set) plans.push_back(member.plan);
    LeftBehind got;
    RunOptions how;
    how.steps = 7;
    how.threads = 1;
    how.poison = true;
    how.on_end = [&](runtime::Executor& executor) -> Status {
      got = left_behind(executor);
      return {};
    };
    const auto report = run_plan_set(plans, how);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_EQ(report->losses.size(), 7u);
    EXPECT_EQ(report->peak, plans.back().arena_bytes());
    EXPECT_TRUE(got == step_by_step(plans, 7));
    how.poison = false;
    how.measure = true;
    const auto measured = run_plan_set(plans, how);
    ASSERT_TRUE(measured) << measured.error().message;
    if (!measured->measured) continue;  // under sanitizers
    EXPECT_LE(measured->measured->touched, plans.back().arena_bytes());
    EXPECT_GT(measured->measured->touched, plans.back().arena_bytes() - Bytes(1 << 16));
    EXPECT_EQ(measured->losses, report->losses);
  }
}

TEST(PlanSet, AStateThatChangesWithTheSizeIsNamed) {
  std::vector<plan::Plan> plans;
  for (const std::int64_t width : {8, 16}) {
    ModelRequest request;
    request.model = "mlp";
    request.threads = 1;
    request.sizes = {.width = width};
    plans.push_back(plan_set_for(request, "cpu", {}, {"batch", 2, 2})->front().plan);
  }
  RunOptions how;
  how.threads = 1;
  const auto report = run_plan_set(plans, how);
  ASSERT_FALSE(report);
  EXPECT_NE(report.error().message.find("at one size and"), std::string::npos)
      << report.error().message;
}

TEST(PlanSet, AnUnrolledLengthIsBuiltSizeBySize) {
  ModelRequest request;
  request.model = "lstm";
  request.threads = 1;
  request.sizes = {.batch = 2, .width = 8, .layers = 1, .classes = 20};
  const auto plans = plan_set_for(request, "cpu", {}, {"seq", 2, 4});
  ASSERT_TRUE(plans) << plans.error().message;
  EXPECT_FALSE(plans->front().shared());
  EXPECT_LT(plans->front().plan.graph.nodes.size(), plans->back().plan.graph.nodes.size());
}

// No length is packed by itself, and weights and moments stay where they are.
TEST(PlanSet, AShorterRecurrenceTakesTheFreePlacesOfTheLongest) {
  ModelRequest request;
  request.model = "lstm";
  request.threads = 1;
  request.sizes = {.batch = 3, .width = 16, .layers = 2, .classes = 20};
  const auto plans = plan_set_for(request, "cpu", {}, {"seq", 2, 12});
  ASSERT_TRUE(plans) << plans.error().message;
  const plan::Plan& longest = plans->back().plan;
  const auto states = [](const plan::Plan& plan) {
    std::vector<Offset> out;
    for (const plan::ValueSlot& source : plan.sources) {
      if (ir::is_persistent(plan.graph.value(source.value).kind))
        out.push_back(plan::place_of(plan, source.slot));
    }
    return out;
  };
  int near = 0;
  for (const PlanSetMember& member : *plans) {
    EXPECT_LE(member.plan.arena_bytes(), longest.arena_bytes()) << member.sizes.front();
    if (member.places != plan::Places::kNear) continue;
    ++near;
    EXPECT_EQ(states(member.plan), states(longest)) << member.sizes.front();
  }
  EXPECT_EQ(near, 10);
}

TEST(PlanSet, AnIndexThatIsNoneOrLeadsElsewhereIsRefused) {
  const std::string file = testing::TempDir() + "plan_set_wrong.json";
  for (const char* members :
       {"[]", "7", "[3]", R"([{"size": 1}])", R"([{"size": 1, "file": "../up.json"}])",
        R"([{"size": 1, "file": ""}])", R"([{"size": "1", "file": "a.json"}])",
        R"([{"size": 1, "file": "no such.json"}])"}) {
    ASSERT_TRUE(write_file(
        file, fmt::format(
                  R"({{"kind": "plimsoll family", "schema": 1, "option": "batch", "members": {}}})",
                  members)));
    EXPECT_EQ(read_plan(file, {}).error().code, ErrorCode::kBadInput) << members;
  }
}

}  // namespace
}  // namespace plimsoll::api
