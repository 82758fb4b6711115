#include "plimsoll/rewrite/mixed_precision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <unordered_map>

#include "plimsoll/base/random.h"
#include "plimsoll/ops/evaluation/interpreter.h"
#include "plimsoll/ops/functions.h"

namespace plimsoll::rewrite {
namespace {

using ops::Builder;
using ops::Var;

constexpr ir::DType kWide = ir::DType::kF32;

// An embedding, a norm by hand, a product, running statistics, and a mean: of every rule one.
ir::Graph small_model() {
  Builder b("small");
  const Var ids = b.input("ids", {ir::DType::kI64, {4}, {}});
  const Var table = b.weight("table", {kWide, {10, 8}, {}}, {});
  const Var w = b.weight("w", {kWide, {8, 6}, {}}, {});
  const Var gamma = b.weight("gamma", {kWide, {6}, {}}, {});
  const Var mean = b.source("mean", ir::ValueKind::kState, {kWide, {6}, {}}, {});
  const Var variance = b.source("variance", ir::ValueKind::kState, {kWide, {6}, {}}, {});
  const Var rows = ops::gather(table, ids, 0);
  const Var squares =
      b.call1("reduce_mean", {rows * rows}, {{"axes", ir::Ints{1}}, {"keepdims", std::int64_t{1}}});
  const Var scaled = rows * b.call1("rsqrt", {squares + 1e-3});
  const Var h = b.call1("relu", {b.call1("matmul", {scaled, w})});
  const Var n =
      b.call1("batch_norm_inference", {h, gamma, gamma, mean, b.call1("exp", {variance})});
  return *b.finish({b.call1("softmax", {n}), ops::mean(n)});
}

std::unordered_map<std::string, ops::Array> some_sources(const ir::Graph& graph) {
  Random random(3);
  std::unordered_map<std::string, ops::Array> out;
  for (const ir::Value& value : graph.values) {
    if (!ir::is_source(value.kind) || value.kind == ir::ValueKind::kConstant) continue;
    ops::Array array({value.type.dtype, value.type.shape, {}});
    for (std::int64_t i = 0; i < array.elements(); ++i)
      array.set_number(i, array.is_real() ? random.normal() : static_cast<double>(i));
    array.round();
    out.emplace(value.name, std::move(array));
  }
  return out;
}

TEST(MixedPrecision, SourcesAndOutputsStayWideAndProductsAreNarrow) {
  for (const ir::DType narrow : {ir::DType::kBF16, ir::DType::kF16}) {
    const ir::Graph before = small_model();
    const auto after = mixed_precision(before, narrow);
    ASSERT_TRUE(after) << after.error().message;
    for (const ir::Value& value : after->values) {
      EXPECT_FALSE(ir::is_source(value.kind) && value.type.dtype == narrow) << value.name;
    }
    for (const ValueId output : after->outputs) EXPECT_EQ(after->value(output).type.dtype, kWide);
    std::map<std::string, ir::DType> type_of;
    for (const ir::Node& node : after->nodes)
      type_of[node.op] = after->value(node.outputs[0]).type.dtype;
    EXPECT_EQ(type_of.at("matmul"), narrow);
    EXPECT_EQ(type_of.at("relu"), narrow);
    EXPECT_EQ(type_of.at("rsqrt"), kWide);
    EXPECT_EQ(type_of.at("reduce_mean"), kWide);
    EXPECT_EQ(type_of.at("exp"), kWide);
    // Of a table only rows are cast.
    EXPECT_EQ(type_of.at("gather"), kWide);
  }
}

TEST(MixedPrecision, ComputesTheSameToThePrecisionOfTheType) {
  const ir::Graph before = small_model();
  const auto after = mixed_precision(before, ir::DType::kBF16);
  ASSERT_TRUE(after) << after.error().message;
  const auto sources = some_sources(before);
  const auto a = ops::interpret(before, sources);
  const auto b = ops::interpret(*after, sources);
  ASSERT_TRUE(a && b);
  double largest = 0;
  for (std::size_t o = 0; o < before.outputs.size(); ++o) {
    const ops::Array& exact = *(*a)[before.outputs[o].index()];
    const ops::Array& narrow = *(*b)[after->outputs[o].index()];
    for (std::int64_t i = 0; i < exact.elements(); ++i)
      largest = std::max(largest, std::abs(exact.number(i) - narrow.number(i)));
  }
  EXPECT_GT(largest, 0);
  EXPECT_LT(largest, 0.05);
}

// A weight that is read twice is cast once.
TEST(MixedPrecision, AValueIsCastOnce) {
  Builder b("twice");
  const Var x = b.input("x", {kWide, {4, 4}, {}});
  const Var w = b.weight("w", {kWide, {4, 4}, {}}, {});
  const ir::Graph graph = *b.finish({b.call1("matmul", {b.call1("matmul", {x, w}), w})});
  const auto after = mixed_precision(graph, ir::DType::kBF16);
  ASSERT_TRUE(after) << after.error().message;
  int casts = 0;
  for (const ir::Node& node : after->nodes) casts += node.op == "cast";
  EXPECT_EQ(casts, 3);  // x, w, and the output back
}

}  // namespace
}  // namespace plimsoll::rewrite
