#include "plimsoll/rewrite/group_updates.h"

#include <gtest/gtest.h>

#include <unordered_map>

#include "plimsoll/ops/evaluation/interpreter.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/ops/update/update.h"
#include "plimsoll/rewrite/testing/random_sources.h"

namespace plimsoll::rewrite {
namespace {

using ops::Builder;
using ops::Var;

// Updates of `small` weights of different sizes and of one that is large.
ir::Graph many_updates(int small) {
  Builder b("updates");
  const Var step = b.input("step", {ir::DType::kI64, {}});
  std::vector<std::pair<Var, Var>> updates;
  for (int i = 0; i <= small; ++i) {
    const ir::TensorType type{ir::DType::kF32, {i == small ? std::int64_t{70000} : i + 1}};
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

TEST(GroupUpdates, SmallOnesRunSixteenAtATime) {
  const ir::Graph before = many_updates(35);
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
  const auto sources = random_sources(before, 5, [](const ir::Value& value, Random& random) {
    return value.type.dtype == ir::DType::kI64 ? 3 : std::abs(random.normal());
  });
  const auto a = ops::interpret(before, sources);
  const auto b = ops::interpret(*after, sources);
  ASSERT_TRUE(a && b);
  std::unordered_map<std::string, ValueId> next;
  for (const ir::Update& update : after->updates)
    next[after->value(update.source).name] = update.next;
  for (const ir::Update& update : before.updates) {
    const std::string& name = before.value(update.source).name;
    const ops::Array& wanted = *(*a)[update.next.index()];
    const ops::Array& got = *(*b)[next.at(name).index()];
    ASSERT_EQ(wanted.elements(), got.elements()) << name;
    for (std::int64_t i = 0; i < wanted.elements(); ++i)
      ASSERT_EQ(wanted.number(i), got.number(i)) << name << " " << i;
  }
}

}  // namespace
}  // namespace plimsoll::rewrite
