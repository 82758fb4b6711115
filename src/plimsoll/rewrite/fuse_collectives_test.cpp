#include "plimsoll/rewrite/fuse_collectives.h"

#include <gtest/gtest.h>

#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/functions.h"

namespace plimsoll::rewrite {
namespace {

using ops::Var;

// d3 r3 u3 d2 r2 u2 d1 r1 u1, of 64 bytes each; "exp" makes a gradient, "sgd" updates.
ir::Graph four_gradients() {
  ops::Builder b("four");
  const ir::TensorType type{ir::DType::kF32, {16}, {}};
  const Var x = b.input("x", type);
  const ops::CollectiveOptions how{2, true, false};
  for (const char* name : {"w3", "w2", "w1", "w0"}) {
    const Var w = b.weight(name, type, {});
    b.set_phase(ir::Phase::kBackward);
    const Var sum = ops::all_reduce(ops::exp(x * w), how);
    b.set_phase(ir::Phase::kUpdate);
    b.update(w, ops::sgd(w, sum, {}).w);
  }
  auto graph = b.finish({});
  EXPECT_TRUE(graph.has_value()) << graph.error().message;
  return *graph;
}

std::string order_of(const ir::Graph& graph) {
  std::string out;
  for (const ir::Node& node : graph.nodes) {
    if (node.op == "exp") out += "d ";
    if (node.op == "sgd") out += "u ";
    if (node.op == "all_reduce") out += "R" + std::to_string(node.inputs.size()) + " ";
  }
  return out;
}

TEST(FuseCollectives, SendsBucketsInTheOrderOfGradientsAndUpdatesBehindTheNext) {
  const auto fused = fuse_collectives(four_gradients(), Bytes(128));
  ASSERT_TRUE(fused.has_value()) << fused.error().message;
  EXPECT_EQ(order_of(*fused), "d d R2 d d R2 u u u u ");
}

TEST(FuseCollectives, MakesOneMessageForAllAndOneForEach) {
  EXPECT_EQ(order_of(*fuse_collectives(four_gradients(), Bytes(1 << 20))), "d d d d R4 u u u u ");
  EXPECT_EQ(order_of(*fuse_collectives(four_gradients(), Bytes(1))),
            "d R1 d R1 u d R1 u d R1 u u ");
}

TEST(FuseCollectives, KeepsDtypesApart) {
  ops::Builder b("two dtypes");
  const ops::CollectiveOptions how{2, true, false};
  std::vector<Var> sums;
  for (const ir::DType dtype : {ir::DType::kF32, ir::DType::kBF16, ir::DType::kF32})
    sums.push_back(ops::all_reduce(b.input(std::to_string(sums.size()), {dtype, {4}, {}}), how));
  const auto graph = b.finish(sums);
  ASSERT_TRUE(graph.has_value());
  EXPECT_EQ(order_of(*fuse_collectives(*graph, Bytes(1 << 20))), "R1 R2 ");
}

TEST(FuseCollectives, LeavesSumsAloneThatMayNotWait) {
  ops::Builder b("at once");
  const ir::TensorType type{ir::DType::kF32, {16}, {}};
  const Var x = b.input("x", type);
  const Var a = ops::all_reduce(x, {2, false, false});
  const auto graph = b.finish({ops::all_reduce(ops::exp(a), {2, false, false})});
  ASSERT_TRUE(graph.has_value());
  EXPECT_EQ(order_of(*fuse_collectives(*graph, Bytes(1 << 20))), "R1 d R1 ");
}

}  // namespace
}  // namespace plimsoll::rewrite
