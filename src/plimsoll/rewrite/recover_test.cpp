#include "plimsoll/rewrite/recover.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "plimsoll/base/random.h"
#include "plimsoll/ops/evaluation/interpreter.h"
#include "plimsoll/ops/functions.h"

namespace plimsoll::rewrite {
namespace {

using ops::Array;
using ops::Builder;
using ops::Var;

int count_of(const ir::Graph& graph, std::string_view op) {
  int out = 0;
  for (const ir::Node& node : graph.nodes) out += node.op == op ? 1 : 0;
  return out;
}

Array evaluate(const ir::Graph& graph) {
  std::unordered_map<std::string, Array> sources;
  for (const ir::Value& value : graph.values) {
    if (!ir::is_source(value.kind) || value.kind == ir::ValueKind::kConstant) continue;
    Random random(value.name.size() + 1);
    Array array(value.type);
    for (std::int64_t i = 0; i < array.elements(); ++i) array.set_number(i, random.normal());
    array.round();
    sources.emplace(value.name, std::move(array));
  }
  const auto values = ops::interpret(graph, sources);
  EXPECT_TRUE(values) << values.error().message;
  return *(*values)[graph.outputs.front().index()];
}

// The graph after recovery, which computes the same.
ir::Graph recovered(Builder& builder, Var y, const RecoverOptions& options = {}) {
  auto graph = builder.finish({y});
  EXPECT_TRUE(graph) << graph.error().message;
  auto out = recover_patterns(*graph, options);
  EXPECT_TRUE(out) << out.error().message;
  const Array before = evaluate(*graph);
  const Array after = evaluate(*out);
  for (std::int64_t i = 0; i < before.elements(); ++i)
    EXPECT_NEAR(before.number(i), after.number(i), 1e-4);
  return *out;
}

Var input(Builder& builder, const ir::Shape& shape) {
  return builder.input("x", {ir::DType::kF32, shape, {}});
}

TEST(RecoverActivations, KnowsGeluHoweverItIsWritten) {
  for (int form = 0; form < 4; ++form) {
    Builder b("gelu");
    const Var x = input(b, {3, 5});
    Var y;
    if (form == 0) y = x * 0.5 * (b.call1("erf", {x / std::sqrt(2.0)}) + 1.0);
    if (form == 1) y = 0.5 * (x * (1.0 + b.call1("erf", {x * 0.70710678})));
    if (form == 2) y = (x * (b.call1("erf", {x * 0.70710678}) * 0.5 + 0.5));
    if (form == 3)
      y = 0.5 * x * (1.0 + b.call1("tanh", {(x + x * x * x * 0.044715) * 0.7978845608}));
    const ir::Graph graph = recovered(b, y);
    EXPECT_EQ(graph.nodes.size(), 1U) << "form " << form;
    EXPECT_EQ(graph.nodes[0].attributes.text("approximate", "none"), form == 3 ? "tanh" : "none");
  }
}

TEST(RecoverActivations, LeavesAloneWhatIsReadElsewhere) {
  Builder b("shared");
  const Var x = input(b, {4});
  const Var s = b.call1("sigmoid", {x});
  const ir::Graph graph = recovered(b, x * s + s);
  EXPECT_EQ(count_of(graph, "silu"), 0);
}

TEST(RecoverNorms, FindsLayerNormAndRmsNorm) {
  Builder b("norms");
  const Var x = input(b, {2, 3, 8});
  const auto weight = [&](const char* name) {
    return b.weight(name, {ir::DType::kF32, {8}, {}}, {});
  };
  const auto mean = [&](Var v) {
    return b.call1("reduce_mean", {v}, {{"axes", ir::Ints{2}}, {"keepdims", std::int64_t{1}}});
  };
  const Var c = x - mean(x);
  const Var normal = c / b.call1("sqrt", {mean(c * c) + 1e-5});
  const Var h = normal * weight("gamma") + weight("beta_");
  const Var r = h * (1.0 / b.call1("sqrt", {mean(h * h) + 1e-6}));
  const ir::Graph graph = recovered(b, weight("scale__") * r);
  EXPECT_EQ(count_of(graph, "layer_norm"), 1);
  EXPECT_EQ(count_of(graph, "rms_norm"), 1);
  EXPECT_EQ(graph.nodes.size(), 2U);
}

Var heads(Builder& b, Var x) {
  return b.call1("transpose", {b.call1("reshape", {x}, {{"shape", ir::Ints{2, 5, 2, 4}}})},
                 {{"perm", ir::Ints{0, 2, 1, 3}}});
}

Var attention(Builder& b, Var q, Var k, Var v, Var mask, Var condition = {}) {
  const Var turned = b.call1("transpose", {heads(b, k)}, {{"perm", ir::Ints{0, 1, 3, 2}}});
  Var scores = b.call1("matmul", {heads(b, q), turned}) / 2.0;
  if (condition) scores = b.call1("where", {condition, scores, ops::number(scores, -1e30)});
  if (mask) scores = scores + mask;
  const Var y = b.call1("matmul", {b.call1("softmax", {scores}), heads(b, v)});
  return b.call1("reshape", {b.call1("transpose", {y}, {{"perm", ir::Ints{0, 2, 1, 3}}})},
                 {{"shape", ir::Ints{2, 5, 8}}});
}

TEST(RecoverAttention, SeesCausalityAndPackedHeads) {
  Builder b("causal");
  const Var qkv = input(b, {2, 5, 24});
  const auto parts =
      b.call("split", {qkv}, {{"axis", std::int64_t{2}}, {"sizes", ir::Ints{8, 8, 8}}});
  Array mask({ir::DType::kF32, {1, 1, 5, 5}, {}});
  for (std::int64_t i = 0; i < 25; ++i)
    mask.set_number(i, i % 5 > i / 5 ? -std::numeric_limits<double>::infinity() : 0);
  const ir::Graph graph =
      recovered(b, attention(b, parts[0], parts[1], parts[2], b.constant("mask", mask)));
  ASSERT_EQ(graph.nodes.size(), 1U);
  EXPECT_EQ(graph.nodes[0].op, "attention_qkv");
  EXPECT_EQ(graph.nodes[0].attributes.integer("causal", 0), 1);
}

// A local window is a condition of its own, padding is added to it: both count.
TEST(RecoverAttention, JoinsAConditionAndAMask) {
  Builder b("local");
  const Var x = input(b, {2, 5, 8});
  const Var mask = b.input("padding", {ir::DType::kF32, {2, 1, 1, 5}, {}});
  Array window({ir::DType::kBool, {5, 5}, {}});
  for (std::int64_t i = 0; i < 25; ++i)
    window.set_number(i, i % 5 <= i / 5 && i % 5 + 2 > i / 5 ? 1 : 0);
  const ir::Graph graph = recovered(b, attention(b, x, x, x, mask, b.constant("window", window)));
  EXPECT_EQ(count_of(graph, "attention"), 1);
}

TEST(RecoverAttention, KeepsALearnedBiasApartWhenItIsToBeTrained) {
  for (const bool training : {false, true}) {
    Builder b("biased");
    const Var x = input(b, {2, 5, 8});
    const Var bias = b.weight("bias", {ir::DType::kF32, {1, 2, 5, 5}, {}}, {});
    const ir::Graph graph = recovered(b, attention(b, x, x, x, bias), {training});
    EXPECT_EQ(count_of(graph, "attention"), training ? 0 : 1);
  }
}

// The bias comes out of a layer that is recovered itself, in the same round.
TEST(RecoverAttention, KeepsABiasThatALayerMakesApartWhenItIsToBeTrained) {
  for (const bool training : {false, true}) {
    Builder b("made");
    const Var x = input(b, {2, 5, 8});
    Array places({ir::DType::kF32, {5, 5, 3}, {}});
    for (std::int64_t i = 0; i < places.elements(); ++i)
      places.set_number(i, 0.1 * static_cast<double>(i % 7));
    const Var w = b.weight("w", {ir::DType::kF32, {3, 2}, {}}, {});
    const Var shift = b.weight("shift", {ir::DType::kF32, {2}, {}}, {});
    const Var layer = b.call1("matmul", {b.constant("places", places), w}) + shift;
    const Var bias =
        b.call1("reshape",
                {b.call1("transpose", {b.call1("relu", {layer})}, {{"perm", ir::Ints{2, 0, 1}}})},
                {{"shape", ir::Ints{1, 2, 5, 5}}});
    const ir::Graph graph = recovered(b, attention(b, x, x, x, bias), {training});
    EXPECT_EQ(count_of(graph, "linear"), 1);
    EXPECT_EQ(count_of(graph, "attention"), training ? 0 : 1);
  }
}

TEST(RecoverLinear, TakesTheBiasAndTheTranspose) {
  Builder b("linear");
  const Var x = input(b, {2, 3, 4});
  const Var w = b.weight("w", {ir::DType::kF32, {6, 4}, {}}, {});
  const Var bias = b.weight("bias", {ir::DType::kF32, {6}, {}}, {});
  const ir::Graph graph = recovered(
      b, bias + b.call1("matmul", {x, b.call1("transpose", {w}, {{"perm", ir::Ints{1, 0}}})}));
  ASSERT_EQ(graph.nodes.size(), 1U);
  EXPECT_EQ(graph.nodes[0].attributes.integer("trans_w", 0), 1);
}

}  // namespace
}  // namespace plimsoll::rewrite
