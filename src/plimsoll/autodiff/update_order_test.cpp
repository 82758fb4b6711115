#include "plimsoll/autodiff/update_order.h"

#include <gtest/gtest.h>

#include "plimsoll/ops/functions.h"

namespace plimsoll::autodiff {
namespace {

TEST(UpdatesBehindReaders, MovesTheCounterBehindItsLastReader) {
  ops::Builder b("g");
  const ops::Var x = b.input("x", {ir::DType::kF32, {4}, {}});
  const ops::Var counter =
      b.source("counter", ir::ValueKind::kState, {ir::DType::kU64, {}, {}}, {});
  const ops::Var first =
      b.call1("dropout", {x, counter}, {{"ratio", 0.5}, {"seed", std::int64_t{1}}});
  b.set_phase(ir::Phase::kUpdate);
  b.update(counter, b.call1("increment", {counter}));
  b.set_phase(ir::Phase::kForward);
  const ops::Var second =
      b.call1("dropout", {first, counter}, {{"ratio", 0.5}, {"seed", std::int64_t{2}}});
  const ops::Var third = ops::add(second, x);
  const ir::Graph graph = updates_behind_readers(*b.finish({third}));
  ASSERT_TRUE(ir::verify(graph));
  EXPECT_EQ(graph.nodes[0].op, "dropout");
  EXPECT_EQ(graph.nodes[1].op, "dropout");
  EXPECT_EQ(graph.nodes[2].op, "increment");
  EXPECT_EQ(graph.nodes[3].op, "add");
}

TEST(UpdatesBehindReaders, LeavesAGraphWithoutOffendersAlone) {
  ops::Builder b("g");
  const ops::Var x = b.input("x", {ir::DType::kF32, {4}, {}});
  const ir::Graph graph = *b.finish({ops::add(x, x)});
  EXPECT_EQ(updates_behind_readers(graph), graph);
}

}  // namespace
}  // namespace plimsoll::autodiff
