#include "plimsoll/rewrite/narrow_lookups.h"

#include <gtest/gtest.h>

#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/functions.h"

namespace plimsoll::rewrite {
namespace {

using ops::Var;

// A table whose rows are looked up, and whose cast, where there is one, is multiplied with.
ir::Graph with_table(bool tied, bool cast_first = false) {
  ops::Builder b("table");
  const Var ids = b.input("ids", {ir::DType::kI64, {4}, {}});
  const Var table = b.weight("table", {ir::DType::kF32, {100, 8}, {}}, {});
  Var narrow;
  if (cast_first) narrow = ops::cast(table, ir::DType::kBF16);
  const Var x = ops::cast(ops::gather(table, ids), ir::DType::kBF16);
  if (tied && !cast_first) narrow = ops::cast(table, ir::DType::kBF16);
  const Var y = tied ? ops::linear(x, narrow, {}, {.trans_w = true}) : x;
  auto graph = b.finish({y});
  EXPECT_TRUE(graph) << graph.error().message;
  return *graph;
}

TEST(NarrowLookups, ATiedTableIsReadByItsCastAlone) {
  for (const bool cast_first : {false, true}) {
    const auto after = narrow_lookups(with_table(true, cast_first));
    ASSERT_TRUE(after) << after.error().message;
    int readers = 0;
    for (const ir::Node& node : after->nodes) {
      for (const ValueId input : node.inputs)
        readers += after->value(input).kind == ir::ValueKind::kWeight;
      if (node.op == "gather") {
        EXPECT_EQ(after->value(node.outputs[0]).type.dtype, ir::DType::kBF16);
      }
    }
    EXPECT_EQ(readers, 1) << cast_first;
  }
}

TEST(NarrowLookups, ATableWithoutACastStaysWide) {
  const ir::Graph before = with_table(false);
  const auto after = narrow_lookups(before);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(after->nodes.size(), before.nodes.size());
}

}  // namespace
}  // namespace plimsoll::rewrite
