#include "plimsoll/rewrite/keep_encoded.h"

#include <gtest/gtest.h>

#include "plimsoll/ops/functions.h"
#include "plimsoll/ops/products/encoded_weight.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::rewrite {
namespace {

int nodes_called(const ir::Graph& graph, std::string_view op) {
  int out = 0;
  for (const ir::Node& node : graph.nodes) out += node.op == op ? 1 : 0;
  return out;
}

// A table that is read twice, and a weight [K,N].
ir::Graph two_layers(std::int64_t rows) {
  ops::Builder builder("two_layers");
  const ops::Var ids = builder.input("ids", {ir::DType::kI64, {rows}, {}});
  const ops::Var table = builder.weight("table", {ir::DType::kF32, {100, 64}, {}}, {});
  const ops::Var w = builder.weight("w", {ir::DType::kF32, {64, 64}, {}}, {});
  const ops::Var x = ops::gather(table, ids, 0);
  return *builder.finish({ops::linear(ops::linear(x, w), table, {}, {true})});
}

const std::map<std::string, EncodedWeight> kBoth = {
    {"table", {"q8_0", ir::DType::kF32, Bytes(7000)}},
    {"w", {"q4_0", ir::DType::kBF16, Bytes(3000)}}};

TEST(KeepEncoded, DecodesWhatCannotBeReadAsItIs) {
  const auto graph = keep_encoded(two_layers(50), kBoth);
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(nodes_called(*graph, "encoded_gather"), 1);
  EXPECT_EQ(nodes_called(*graph, "encoded_linear"), 1);  // of the table, in tiles
  EXPECT_EQ(nodes_called(*graph, "decode_weight"), 1);   // [K,N] and many rows
  EXPECT_EQ(nodes_called(*graph, "linear"), 1);
  EXPECT_TRUE(ops::verify(*graph));
  for (const ir::Value& value : graph->values) {
    if (value.kind != ir::ValueKind::kWeight) continue;
    EXPECT_EQ(value.type.dtype, ir::DType::kU8) << value.name;
    EXPECT_EQ(ir::bytes_of(value.type), kBoth.at(value.name).bytes);
  }
}

TEST(KeepEncoded, DecodesNothingForFewRows) {
  const auto graph = keep_encoded(two_layers(1), kBoth);
  ASSERT_TRUE(graph);
  EXPECT_EQ(nodes_called(*graph, "encoded_linear"), 2);
  EXPECT_EQ(nodes_called(*graph, "decode_weight"), 0);
}

TEST(KeepEncoded, DecodesForGradientsOfManyRows) {
  const auto graph = keep_encoded(two_layers(50), kBoth, {.differentiated = true});
  ASSERT_TRUE(graph);
  EXPECT_EQ(nodes_called(*graph, "encoded_linear"), 0);
  EXPECT_EQ(nodes_called(*graph, "decode_weight"), 2);
}

TEST(KeepEncoded, RoundsActivationsOnlyWhereWeightsAreCodesOfEightBits) {
  for (const std::int64_t rows : {1, 50}) {
    const auto graph = keep_encoded(two_layers(rows), kBoth, {.int8_activations = true});
    ASSERT_TRUE(graph) << graph.error().message;
    EXPECT_TRUE(ops::verify(*graph));
    int rounded = 0;
    for (const ir::Node& node : graph->nodes) {
      if (node.op != "encoded_linear" || !ops::rounds_activations(ops::attributes_of(node)))
        continue;
      ++rounded;
      EXPECT_EQ(ops::attributes_of(node).text("form"), "q8_0");
    }
    EXPECT_EQ(rounded, 1);
  }
}

TEST(KeepEncoded, LeavesOtherWeightsAlone) {
  const auto graph = keep_encoded(two_layers(50), {{"other", {"q8_0", ir::DType::kF32, Bytes(9)}}});
  ASSERT_TRUE(graph);
  EXPECT_EQ(*graph, two_layers(50));
}

TEST(KeepEncoded, RefusesFewerBytesThanTheTableOfChunks) {
  EXPECT_FALSE(keep_encoded(two_layers(50), {{"table", {"q8_0", ir::DType::kF32, Bytes(8)}}}));
}

}  // namespace
}  // namespace plimsoll::rewrite
