#include "plimsoll/rewrite/sparse_gradients.h"

#include <gtest/gtest.h>

#include <unordered_map>

#include "plimsoll/base/random.h"
#include "plimsoll/ops/evaluation/interpreter.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/fuse_collectives.h"

namespace plimsoll::rewrite {
namespace {

using ops::Builder;
using ops::Var;

struct Table {
  std::int64_t rows = 4000;
  std::int64_t tokens = 4;
  bool dense = true;  // it is read a second time, whole
  std::int64_t ranks = 2;
  bool layer = false;  // of which a gradient (neg) is there before the rows
};

// exp: the dense part, which could be made first. tanh: what else the backward pass computes, and
// a gradient of its own that is sent last.
ir::Graph step_of(const Table& table) {
  Builder b("step");
  const ir::TensorType whole{ir::DType::kF32, {table.rows, 3}, {}};
  const Var h = b.input("h", whole);
  const Var dy = b.input("dy", {ir::DType::kF32, {1, table.tokens, 3}, {}});
  const Var indices = b.input("i", {ir::DType::kI64, {1, table.tokens}, {}});
  const Var w = b.weight("w", whole, {});
  const Var bias = b.weight("bias", {ir::DType::kF32, {1, table.tokens, 3}, {}}, {});
  const ops::CollectiveOptions how{table.ranks, true, true};
  b.set_phase(ir::Phase::kBackward);
  const Var other = table.layer ? ops::all_reduce(neg(dy), how) : Var();
  const Var dx = tanh(dy);
  const Var dense = table.dense ? ops::exp(h) : Var();
  std::vector<Var> read{dx, indices};
  if (dense) read.push_back(dense);
  const Var gradient =
      b.call1("gather_grad", read, {{"axis", std::int64_t{0}}, {"shape", ir::Ints{table.rows, 3}}});
  const Var sum = ops::all_reduce(gradient, how);
  const Var last = ops::all_reduce(dx, how);
  b.set_phase(ir::Phase::kUpdate);
  b.update(w, ops::sgd(w, sum, {}).w);
  b.update(bias, ops::sgd(bias, last, {}).w);
  if (other) {
    const Var layer = b.weight("layer", {ir::DType::kF32, {1, table.tokens, 3}, {}}, {});
    b.update(layer, ops::sgd(layer, other, {}).w);
  }
  auto graph = b.finish({sum});
  EXPECT_TRUE(graph.has_value()) << graph.error().message;
  return *graph;
}

std::string ops_of(const ir::Graph& graph) {
  std::string out;
  for (const ir::Node& node : graph.nodes) out += (out.empty() ? "" : " ") + node.op;
  return out;
}

ir::Graph sparse(const ir::Graph& before) {
  const auto after = sum_sparse_gradients(before);
  EXPECT_TRUE(after.has_value()) << after.error().message;
  EXPECT_TRUE(ops::verify(*after));
  return *after;
}

TEST(SparseGradients, SumTheDensePartWhenItIsThereAndGatherTheRows) {
  EXPECT_EQ(ops_of(sparse(step_of({}))),
            "exp all_reduce all_gather tanh all_gather gather_grad all_reduce sgd sgd");
}

TEST(SparseGradients, SendOnlyRowsWhereNothingIsDense) {
  EXPECT_EQ(ops_of(sparse(step_of({.dense = false}))),
            "tanh all_gather all_gather gather_grad all_reduce sgd sgd");
}

// 20 bytes of a token (and 8 of its index) against 48 kB of the table.
TEST(SparseGradients, AreSummedWholeWhereRowsAreMany) {
  for (const Table& table : {Table{.tokens = 30}, Table{.tokens = 400, .dense = false},
                             Table{.ranks = 16}, Table{.rows = 400, .tokens = 4}}) {
    const ir::Graph before = step_of(table);
    EXPECT_EQ(sparse(before).nodes.size(), before.nodes.size());
  }
  EXPECT_NE(ops_of(sparse(step_of({.tokens = 20}))).find("all_gather"), std::string::npos);
  EXPECT_NE(ops_of(sparse(step_of({.tokens = 200, .dense = false}))).find("all_gather"),
            std::string::npos);
}

// One process stands for ranks that all hold the same.
TEST(SparseGradients, AreTheSameSums) {
  for (const bool dense : {true, false}) {
    const ir::Graph before = step_of({.dense = dense, .ranks = 3});
    const ir::Graph after = sparse(before);
    std::unordered_map<std::string, ops::Array> inputs;
    for (const ir::Value& value : before.values) {
      if (!ir::is_source(value.kind)) continue;
      Random random(7);
      ops::Array array(value.type);
      for (std::int64_t i = 0; i < array.elements(); ++i)
        array.set_number(i, value.type.dtype == ir::DType::kI64
                                ? static_cast<double>(random.below(3))
                                : random.normal());
      array.round();
      inputs.emplace(value.name, std::move(array));
    }
    const auto a = ops::interpret(before, inputs);
    const auto c = ops::interpret(after, inputs);
    ASSERT_TRUE(a.has_value() && c.has_value());
    const ops::Array& wanted = *(*a)[before.outputs[0].index()];
    const ops::Array& got = *(*c)[after.outputs[0].index()];
    ASSERT_EQ(wanted.elements(), got.elements());
    for (std::int64_t i = 0; i < wanted.elements(); ++i)
      EXPECT_NEAR(wanted.number(i), got.number(i), 1e-5) << i;
  }
}

// The table is most of what is sent: the rows for its update come before the rest.
TEST(SparseGradients, ComeBeforeBucketsThatAreReady) {
  const auto fused = fuse_collectives(sparse(step_of({.layer = true})), Bytes(1));
  ASSERT_TRUE(fused.has_value()) << fused.error().message;
  EXPECT_EQ(ops_of(*fused),
            "exp all_reduce all_gather neg tanh all_gather all_reduce all_reduce gather_grad sgd "
            "sgd sgd");
}

// What reads the rows stands behind the bucket that is sent after them.
TEST(SparseGradients, AreReadWhileTheLastBucketIsSent) {
  const auto fused = fuse_collectives(sparse(step_of({})), Bytes(1));
  ASSERT_TRUE(fused.has_value()) << fused.error().message;
  EXPECT_EQ(ops_of(*fused),
            "exp all_reduce all_gather tanh all_gather all_reduce gather_grad sgd sgd");
}

}  // namespace
}  // namespace plimsoll::rewrite
