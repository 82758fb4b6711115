#include "plimsoll/schedule/workload/joined_parts.h"

#include <gtest/gtest.h>

#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/schedule/fit.h"
#include "plimsoll/schedule/workload/graph_workload.h"

namespace plimsoll::schedule {
namespace {

using ops::Builder;
using ops::Var;

const ir::TensorType kRow{ir::DType::kF32, {1, 16}};  // 64 bytes

std::int64_t joined(const ir::Graph& graph) {
  GraphWorkloadOptions how;
  how.join = true;
  const auto mapped = make_graph_workload(graph, how);
  EXPECT_TRUE(mapped) << mapped.error().message;
  return mapped->joined;
}

// Every layer reads all that was made before it and adds a row.
ir::Graph growing(int layers) {
  Builder b("growing");
  Var features = tanh(b.input("x", kRow));
  for (int i = 0; i < layers; ++i)
    features = ops::concat({features, tanh(reduce_sum(features, {0}, true))}, 0);
  return *b.finish({reduce_sum(features, {0}, true)});
}

TEST(JoinedParts, AGrowingListLiesInOneBuffer) {
  const ir::Graph graph = growing(3);
  const JoinedParts parts = find_joined_parts(graph);
  std::vector<Bytes> offsets;
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (graph.values[v].producer.valid() && graph.node(graph.values[v].producer).op == "tanh")
      offsets.push_back(parts.home[v].offset);
  }
  EXPECT_EQ(offsets, (std::vector{Bytes(0), Bytes(64), Bytes(128), Bytes(192)}));
  EXPECT_EQ(joined(graph), 3);
}

TEST(JoinedParts, HoldsTheListOnceInsteadOfTwice) {
  GraphWorkloadOptions how;
  const auto copied = make_graph_workload(growing(8), how);
  how.join = true;
  const auto side_by_side = make_graph_workload(growing(8), how);
  EXPECT_LT(keep_all(side_by_side->workload).peak_bytes, keep_all(copied->workload).peak_bytes);
  EXPECT_EQ(side_by_side->workload.tasks.size() + 8, copied->workload.tasks.size());
}

TEST(JoinedParts, TheSameRowsInOrderNeedNothingEither) {
  Builder b("g");
  const Var x = b.input("x", kRow);
  const Var p = tanh(x), q = sigmoid(x), r = relu(x);
  const Var two = ops::concat({p, q}, 0);
  const Var three = ops::concat({p, q, r}, 0);
  EXPECT_EQ(joined(*b.finish({two, three})), 2);
}

TEST(JoinedParts, WhatIsNoRunOfBytesOrHasAHomeElsewhereIsCopied) {
  {
    Builder b("inner axis");
    const Var x = b.input("x", {ir::DType::kF32, {2, 16}});
    EXPECT_EQ(joined(*b.finish({ops::concat({tanh(x), relu(x)}, 1)})), 0);
  }
  {
    Builder b("twice the same");
    const Var y = tanh(b.input("x", kRow));
    EXPECT_EQ(joined(*b.finish({ops::concat({y, y}, 0)})), 0);
  }
  {
    Builder b("a source");
    const Var x = b.input("x", kRow);
    EXPECT_EQ(joined(*b.finish({ops::concat({x, tanh(x)}, 0)})), 0);
  }
  {
    Builder b("another order");
    const Var x = b.input("x", kRow);
    const Var p = tanh(x), q = relu(x);
    EXPECT_EQ(joined(*b.finish({ops::concat({p, q}, 0), ops::concat({q, p}, 0)})), 1);
  }
  {
    Builder b("not aligned");
    const Var x = b.input("x", {ir::DType::kF32, {1, 5}});
    EXPECT_EQ(joined(*b.finish({ops::concat({tanh(x), relu(x)}, 0)})), 0);
  }
}

}  // namespace
}  // namespace plimsoll::schedule
