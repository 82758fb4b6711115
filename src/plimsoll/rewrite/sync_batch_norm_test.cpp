#include "plimsoll/rewrite/sync_batch_norm.h"

#include <gtest/gtest.h>

#include <unordered_map>

#include "plimsoll/base/random.h"
#include "plimsoll/ops/evaluation/interpreter.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::rewrite {
namespace {

ir::Graph one_norm() {
  ops::Builder b("norm");
  const ir::TensorType channels{ir::DType::kF32, {3}, {}};
  const ops::Var x = b.input("x", {ir::DType::kF32, {2, 3, 4}, {}});
  const ops::Var mean = b.weight("running_mean", channels, {});
  const ops::Var var = b.weight("running_var", channels, {});
  const ops::BatchNorm norm =
      ops::batch_norm(x, b.weight("gamma", channels, {}), b.weight("beta", channels, {}),
                      {.epsilon = 1e-3, .relu = true});
  b.set_phase(ir::Phase::kUpdate);
  const ops::RunningStatistics next =
      ops::batch_norm_update({mean, var}, norm.mean, norm.var, 8, 0.1);
  b.update(mean, next.mean);
  b.update(var, next.var);
  auto graph = b.finish({norm.y, norm.mean, norm.var});
  EXPECT_TRUE(graph.has_value()) << graph.error().message;
  return *graph;
}

// One process stands for ranks that all hold the same, whose statistics are those of one.
TEST(SyncBatchNorm, TakesTheStatisticsOfAllRanks) {
  const ir::Graph before = one_norm();
  const auto made = sync_batch_norm(before, {3, false, true});
  ASSERT_TRUE(made.has_value()) << made.error().message;
  const ir::Graph& after = *made;
  ASSERT_TRUE(ops::verify(after));
  int sums = 0;
  for (const ir::Node& node : after.nodes) {
    sums += node.op == "all_reduce";
    if (node.op == "batch_norm_update") {
      EXPECT_EQ(ops::attributes_of(node).integer("count"), 24);
    }
  }
  EXPECT_EQ(sums, 2);
  EXPECT_EQ(after.updates.size(), 2u);
  std::unordered_map<std::string, ops::Array> inputs;
  Random random(11);
  for (const ir::Value& value : before.values) {
    if (!ir::is_source(value.kind)) continue;
    ops::Array array(value.type);
    for (std::int64_t i = 0; i < array.elements(); ++i) array.set_number(i, random.normal());
    array.round();
    inputs.emplace(value.name, std::move(array));
  }
  const auto a = ops::interpret(before, inputs);
  const auto c = ops::interpret(after, inputs);
  ASSERT_TRUE(a.has_value() && c.has_value());
  for (std::size_t o = 0; o < 3; ++o) {
    const ops::Array& wanted = *(*a)[before.outputs[o].index()];
    const ops::Array& got = *(*c)[after.outputs[o].index()];
    ASSERT_EQ(wanted.elements(), got.elements());
    for (std::int64_t i = 0; i < wanted.elements(); ++i)
      EXPECT_NEAR(wanted.number(i), got.number(i), 1e-5) << o << " " << i;
  }
}

}  // namespace
}  // namespace plimsoll::rewrite
