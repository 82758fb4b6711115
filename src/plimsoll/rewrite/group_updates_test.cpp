#include "plimsoll/rewrite/group_updates.h"

#include <gtest/gtest.h>

#include <unordered_map>

#include "plimsoll/ops/evaluation/interpreter.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/ops/normalization/norm.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/ops/update/update.h"
#include "plimsoll/rewrite/testing/random_sources.h"

namespace plimsoll::rewrite {
namespace {

using ops::Builder;
using ops::Var;

// Updates of `small` weights of different sizes and, where asked for, of one that is large.
ir::Graph many_updates(int small, bool and_a_large_one = false) {
  Builder b("updates");
  const Var step = b.input("step", {ir::DType::kI64, {}});
  std::vector<std::pair<Var, Var>> updates;
  for (int i = 0; i < small + (and_a_large_one ? 1 : 0); ++i) {
    const ir::TensorType type{ir::DType::kF32, {i == small ? (std::int64_t{1} << 20) + 1 : i + 1}};
    const Var w = b.weight(fmt::format("w{}", i), type, {});
    const Var m = b.weight(fmt::format("m{}", i), type, {});
    const Var v = b.weight(fmt::format("v{}", i), type, {});
    const Var g = b.input(fmt::format("g{}", i), type);
    b.set_phase(ir::Phase::kUpdate);
    const auto made = b.call("adamw", {w, g, m, v, step}, {{"lr", 0.01}});
    updates.emplace_back(w, made[0]);
    updates.emplace_back(m, made[1]);
    updates.emplace_back(v, made[2]);
  }
  for (const auto& [source, next] : updates) b.update(source, next);
  auto graph = b.finish({});
  EXPECT_TRUE(graph) << graph.error().message;
  return *graph;
}

void expect_next_versions(const ir::Graph& before, const ir::Graph& after) {
  const auto sources = random_sources(before, 5, [](const ir::Value& value, Random& random) {
    return value.type.dtype == ir::DType::kI64 ? 3 : std::abs(random.normal());
  });
  const auto a = ops::interpret(before, sources);
  const auto b = ops::interpret(after, sources);
  ASSERT_TRUE(a && b);
  std::unordered_map<std::string, ValueId> next;
  for (const ir::Update& update : after.updates)
    next[after.value(update.source).name] = update.next;
  for (const ir::Update& update : before.updates) {
    const std::string& name = before.value(update.source).name;
    const ops::Array& wanted = *(*a)[update.next.index()];
    const ops::Array& got = *(*b)[next.at(name).index()];
    ASSERT_EQ(wanted.elements(), got.elements()) << name;
    for (std::int64_t i = 0; i < wanted.elements(); ++i)
      ASSERT_EQ(wanted.number(i), got.number(i)) << name << " " << i;
  }
}

TEST(GroupUpdates, SmallOnesRunSixteenAtATime) {
  const ir::Graph before = many_updates(35, true);
  const auto after = group_updates(before);
  ASSERT_TRUE(after) << after.error().message;
  int groups = 0;
  int alone = 0;
  for (const ir::Node& node : after->nodes) {
    groups += node.op == "adamw_group";
    alone += node.op == "adamw";
  }
  EXPECT_EQ(groups, 2);
  EXPECT_EQ(alone, 4);  // three that fill no group, and the large one
  EXPECT_EQ(after->updates.size(), before.updates.size());
}

TEST(GroupUpdates, EveryWeightBecomesWhatItWouldHave) {
  const ir::Graph before = many_updates(ops::kUpdateGroup);
  const auto after = group_updates(before);
  ASSERT_TRUE(after) << after.error().message;
  expect_next_versions(before, *after);
}

// Running statistics of so many norms of different widths.
ir::Graph many_statistics(int norms) {
  Builder b("statistics");
  std::vector<std::pair<Var, Var>> updates;
  for (int i = 0; i < norms; ++i) {
    const ir::TensorType type{ir::DType::kF32, {i % 7 + 1}};
    const Var mean = b.weight(fmt::format("mean{}", i), type, {});
    const Var var = b.weight(fmt::format("var{}", i), type, {});
    const Var now = b.input(fmt::format("now{}", i), type);
    b.set_phase(ir::Phase::kUpdate);
    const auto made = b.call("batch_norm_update", {mean, var, now, now},
                             {{"count", std::int64_t{i + 1}}, {"momentum", 0.25}});
    updates.emplace_back(mean, made[0]);
    updates.emplace_back(var, made[1]);
  }
  for (const auto& [source, next] : updates) b.update(source, next);
  auto graph = b.finish({});
  EXPECT_TRUE(graph) << graph.error().message;
  return *graph;
}

TEST(GroupUpdates, StatisticsOfNormsMoveSixteenAtATimeToWhereTheyWould) {
  const ir::Graph before = many_statistics(2 * ops::kStatisticsGroup + 3);
  const auto after = group_updates(before);
  ASSERT_TRUE(after) << after.error().message;
  int groups = 0;
  for (const ir::Node& node : after->nodes) groups += node.op == "batch_norm_update_group";
  EXPECT_EQ(groups, 2);
  EXPECT_EQ(after->nodes.size(), 2U + 3U);
  expect_next_versions(before, *after);
}

}  // namespace
}  // namespace plimsoll::rewrite
