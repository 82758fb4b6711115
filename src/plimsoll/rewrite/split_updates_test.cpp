#include "plimsoll/rewrite/split_updates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "plimsoll/ops/collective/shard.h"
#include "plimsoll/ops/evaluation/interpreter.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/testing/random_sources.h"

namespace plimsoll::rewrite {
namespace {

using ops::Builder;
using ops::Var;

constexpr std::int64_t kLargeWeight = 5000;

// Updates of a large weight and of a small one; somebody reads the large one's next version.
ir::Graph two_updates(std::string_view op) {
  Builder b("updates");
  const Var step = b.input("step", {ir::DType::kI64, {}});
  const ir::Init zero{ir::Init::Kind::kConstant, 0, 0};
  std::vector<std::pair<Var, Var>> updates;
  Var read;
  for (const std::int64_t elements : {kLargeWeight, std::int64_t{7}}) {
    const ir::TensorType type{ir::DType::kF32, {elements}, {}};
    const std::string name = fmt::format("w{}", elements);
    std::vector<Var> inputs{b.weight(name, type, {}), b.input("g" + name, type)};
    for (const char* which : {".m", ".v"}) {
      if (op == "momentum" && inputs.size() == 3) break;
      inputs.push_back(b.source(name + which, ir::ValueKind::kOptimizer, type, zero));
    }
    if (op != "momentum") inputs.push_back(step);
    b.set_phase(ir::Phase::kUpdate);
    const auto made = b.call(op, inputs, {{"lr", 0.01}});
    updates.emplace_back(inputs[0], made[0]);
    for (std::size_t i = 1; i < made.size(); ++i) updates.emplace_back(inputs[1 + i], made[i]);
    if (!read) read = b.call1("relu", {made[0]});
  }
  for (const auto& [source, next] : updates) b.update(source, next);
  auto graph = b.finish({read});
  EXPECT_TRUE(graph) << graph.error().message;
  return *graph;
}

// By source: its next version. Of moments in parts: all parts, in order.
std::map<std::string, std::vector<double>> next_versions(const ir::Graph& graph) {
  std::map<ValueId, std::string> whole;
  std::map<ValueId, std::int64_t> begin;
  for (const ops::ShardedState& state : ops::sharded_state(graph)) {
    whole[state.value] = state.members.at(0).name;
    begin[state.value] = state.members.at(0).begin;
  }
  const auto sources = random_sources(graph, 5, [&](const ir::Value& value, Random& random) {
    if (value.type.dtype == ir::DType::kI64) return 3.0;
    return value.kind == ir::ValueKind::kOptimizer ? 0.25 : std::abs(random.normal());
  });
  const auto values = ops::interpret(graph, sources);
  EXPECT_TRUE(values);
  std::map<std::string, std::vector<double>> out;
  std::vector<ir::Update> updates = graph.updates;
  std::ranges::stable_sort(updates, {}, [&](const ir::Update& u) { return begin[u.source]; });
  for (const ir::Update& update : updates) {
    const bool part = whole.contains(update.source);
    std::vector<double>& all = out[part ? whole[update.source] : graph.value(update.source).name];
    const ops::Array& next = *(*values)[update.next.index()];
    all.insert(all.end(), next.reals.begin(), next.reals.end());
  }
  out["output"] = (*values)[graph.outputs[0].index()]->reals;
  return out;
}

TEST(SplitUpdates, LargeMomentsAreSourcesOfTheirOwn) {
  const ir::Graph before = two_updates("adamw");
  EXPECT_EQ(largest_update(before), Bytes(4 * 4 * kLargeWeight));
  const auto after = split_updates(before, Bytes(2048 * 4));
  ASSERT_TRUE(after) << after.error().message;
  int updates = 0;
  for (const ir::Node& node : after->graph.nodes) updates += node.op == "adamw";
  EXPECT_EQ(updates, 4) << "three parts and the small one";
  EXPECT_EQ(after->operators, 1);
  EXPECT_EQ(after->parts, 3);
  std::int64_t largest = 0;
  for (const ir::Value& value : after->graph.values) {
    if (value.kind == ir::ValueKind::kOptimizer)
      largest = std::max(largest, value.type.shape.elements());
  }
  EXPECT_EQ(largest, 2048);
}

TEST(SplitUpdates, EveryElementBecomesWhatItWouldHave) {
  for (const std::string_view op : {"momentum", "adam", "adamw"}) {
    const ir::Graph before = two_updates(op);
    for (const double bytes_per_second : {0.0, 1.0, 1e9}) {
      const auto after = split_updates(before, Bytes(1), {{}, bytes_per_second});
      ASSERT_TRUE(after) << after.error().message;
      EXPECT_NE(after->graph, before);
      EXPECT_EQ(next_versions(after->graph), next_versions(before)) << op;
    }
  }
}

// A step of ten nodes behind the gradient, and a bus that takes two nodes' time for a part.
TEST(SplitUpdates, PacedPartsStandWhereTheirMomentsAreThere) {
  Builder b("step");
  const ir::TensorType type{ir::DType::kF32, {4096}, {}};
  const ir::Init zero{ir::Init::Kind::kConstant, 0, 0};
  const Var w = b.weight("w", type, {});
  const Var g = b.input("g", type);
  const Var m = b.source("m", ir::ValueKind::kOptimizer, type, zero);
  b.set_phase(ir::Phase::kUpdate);
  const auto made = b.call("momentum", {w, g, m}, {{"lr", 0.01}});
  b.update(w, made[0]);
  b.update(m, made[1]);
  Var rest = g;
  for (int i = 0; i < 10; ++i) rest = b.call1("relu", {rest});
  const ir::Graph before = *b.finish({rest});
  const auto after = split_updates(before, Bytes(4096), {{}, 2048});
  ASSERT_TRUE(after) << after.error().message;
  std::string order;
  for (const ir::Node& node : after->graph.nodes) order += node.op == "momentum" ? 'u' : '.';
  EXPECT_EQ(order, "..u..u..u..u..");
}

TEST(SplitUpdates, LeavesWhatItCannotSplit) {
  ir::Graph shared = two_updates("adamw");
  shared.outputs.push_back(shared.updates[1].source);  // a moment that somebody looks at
  EXPECT_EQ(split_updates(shared, Bytes(1))->graph, shared);
  const ir::Graph small = two_updates("adamw");
  EXPECT_EQ(split_updates(small, Bytes(1 << 20))->graph, small);
  ir::Graph random = two_updates("adamw");
  for (ir::Value& value : random.values) {
    if (value.kind == ir::ValueKind::kOptimizer) value.init.kind = ir::Init::Kind::kNormal;
  }
  EXPECT_EQ(split_updates(random, Bytes(1))->graph, random);
  EXPECT_EQ(largest_update(random), Bytes(0));
}

}  // namespace
}  // namespace plimsoll::rewrite
