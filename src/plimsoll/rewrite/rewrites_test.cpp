#include <cmath>

#include <gtest/gtest.h>

#include "plimsoll/base/random.h"
#include "plimsoll/ops/evaluation/interpreter.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/rewrite/layouts.h"
#include "plimsoll/rewrite/simplify.h"

namespace plimsoll::rewrite {
namespace {

using ops::Builder;
using ops::Var;

constexpr ir::DType kType = ir::DType::kF32;

// A convolution network in small: stem, residual sum, pooling, classifier; with both gradients of
// its second convolution.
ir::Graph small_network() {
  Builder b("small");
  const Var x = b.input("x", {kType, {2, 3, 8, 8}});
  const Var w1 = b.weight("w1", {kType, {8, 3, 3, 3}}, {});
  const Var w2 = b.weight("w2", {kType, {8, 8, 3, 3}}, {});
  const Var gamma = b.weight("gamma", {kType, {8}}, {});
  const Var beta = b.weight("beta", {kType, {8}}, {});
  const ir::Attributes same = {{"pads", ir::Ints{1, 1, 1, 1}}};
  const Var stem = b.call1("conv", {x, w1}, same);
  const Var h = b.call1("relu", {b.call1("batch_norm", {stem, gamma, beta})});
  const Var g = b.call1("batch_norm", {b.call1("conv", {h, w2}, same), gamma, beta});
  const Var sum = b.call1("relu", {g + h});
  const Var pooled =
      b.call1("max_pool", {sum}, {{"kernel", ir::Ints{2, 2}}, {"strides", ir::Ints{2, 2}}});
  const Var mean = b.call1("reduce_mean", {pooled}, {{"axes", ir::Ints{2, 3}}});
  ir::Attributes back = same;
  back.set("shape", ir::Ints{2, 8, 8, 8});
  const Var dx = b.call1("conv_grad_input", {sum, w2}, back);
  back.set("shape", ir::Ints{8, 8, 3, 3});
  const Var dw = b.call1("conv_grad_weight", {h, dx}, back);
  return *b.finish({mean, dw});
}

std::unordered_map<std::string, ops::Array> normal_sources(const ir::Graph& graph) {
  Random random(42);
  std::unordered_map<std::string, ops::Array> out;
  for (const ir::Value& value : graph.values) {
    if (!ir::is_source(value.kind) || value.kind == ir::ValueKind::kConstant) continue;
    ops::Array array({value.type.dtype, value.type.shape, {}});
    for (std::int64_t i = 0; i < array.elements(); ++i) array.set_number(i, random.normal());
    array.round();
    out.emplace(value.name, std::move(array));
  }
  return out;
}

void expect_same_outputs(const ir::Graph& before, const ir::Graph& after) {
  const auto sources = normal_sources(before);
  const auto a = ops::interpret(before, sources);
  const auto b = ops::interpret(after, sources);
  ASSERT_TRUE(a.has_value()) << a.error().message;
  ASSERT_TRUE(b.has_value()) << b.error().message;
  ASSERT_EQ(before.outputs.size(), after.outputs.size());
  for (std::size_t i = 0; i < before.outputs.size(); ++i) {
    const ops::Array& want = *(*a)[before.outputs[i].index()];
    const ops::Array& have = *(*b)[after.outputs[i].index()];
    ASSERT_EQ(before.value(before.outputs[i]).type, after.value(after.outputs[i]).type);
    for (std::int64_t k = 0; k < want.elements(); ++k)
      ASSERT_NEAR(want.number(k), have.number(k), 1e-6 * (1 + std::abs(want.number(k))))
          << "output " << i;
  }
}

int count_op(const ir::Graph& graph, std::string_view op) {
  return static_cast<int>(std::count_if(graph.nodes.begin(), graph.nodes.end(),
                                        [&](const ir::Node& node) { return node.op == op; }));
}

TEST(Simplify, FusesReluIntoBatchNormAndSum) {
  const ir::Graph before = small_network();
  const auto after = simplify(before);
  ASSERT_TRUE(after.has_value()) << after.error().message;
  EXPECT_EQ(count_op(*after, "relu"), 0);
  EXPECT_EQ(count_op(*after, "add_relu"), 1);
  EXPECT_EQ(count_op(*after, "batch_norm"), 2);
  expect_same_outputs(before, *after);
}

TEST(Simplify, KeepsAResultThatSomebodyElseReads) {
  Builder b("read twice");
  const Var x = b.input("x", {kType, {2, 3}});
  const Var sum = x + x;
  const Var y = b.call1("relu", {sum});
  const ir::Graph before = *b.finish({y, sum});
  const auto after = simplify(before);
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(count_op(*after, "relu"), 1);
  expect_same_outputs(before, *after);
}

TEST(Simplify, FusesOnlySumsWithoutBroadcasting) {
  Builder b("broadcast");
  const Var x = b.input("x", {kType, {2, 3}});
  const Var y = b.call1("relu", {x + 1.0});
  const ir::Graph before = *b.finish({y});
  const auto after = simplify(before);
  ASSERT_TRUE(after.has_value());
  EXPECT_EQ(count_op(*after, "add_relu"), 0);
  expect_same_outputs(before, *after);
}

TEST(Simplify, PutsReluIntoConvolutionsForInferenceOnly) {
  Builder b("conv");
  const Var x = b.input("x", {kType, {1, 4, 6, 6}});
  const Var w = b.weight("w", {kType, {4, 4, 3, 3}}, {ir::Init::Kind::kNormal, 0, 0.1});
  const ir::Graph before = *b.finish({b.call1("relu", {b.call1("conv", {x, w})})});
  const auto inferring = simplify(before, {.trains = false});
  ASSERT_TRUE(inferring.has_value());
  EXPECT_EQ(count_op(*inferring, "relu"), 0);
  expect_same_outputs(before, *inferring);
  EXPECT_EQ(count_op(*simplify(before), "relu"), 1);
}

TEST(Simplify, MultipliesLargePatchesByTheirFilters) {
  const auto embedded = [](std::int64_t channels, ir::Ints strides, bool flat) {
    Builder b("patches");
    const Var x = b.input("x", {kType, {2, channels, 16, 24}});
    const Var w = b.weight("w", {kType, {5, channels, 8, 8}}, {ir::Init::Kind::kNormal, 0, 0.1});
    const Var bias = b.weight("b", {kType, {5}}, {ir::Init::Kind::kNormal, 0, 0.1});
    const Var y = b.call1("conv", {x, w, bias}, {{"strides", std::move(strides)}});
    if (!flat) return *b.finish({b.call1("relu", {y})});
    const Var rows = b.call1("reshape", {y}, {{"shape", ir::Ints{2, 5, 6}}});
    return *b.finish(
        {b.call1("exp", {b.call1("transpose", {rows}, {{"perm", ir::Ints{0, 2, 1}}})})});
  };
  for (const bool flat : {false, true}) {
    const ir::Graph before = embedded(3, {8, 8}, flat);
    const auto after = simplify(before, {.fuse_activations = false});
    ASSERT_TRUE(after.has_value()) << after.error().message;
    EXPECT_EQ(count_op(*after, "conv"), 0);
    EXPECT_EQ(count_op(*after, "linear"), 1);
    EXPECT_EQ(count_op(*after, "transpose"), flat ? 1 : 2) << "the product gave the places in rows";
    expect_same_outputs(before, *after);
  }
  EXPECT_EQ(count_op(*simplify(embedded(3, {4, 4}, false)), "conv"), 1) << "patches overlap";
  EXPECT_EQ(count_op(*simplify(embedded(16, {8, 8}, false)), "conv"), 1) << "many channels";
}

// Two branches joined, scaled by channel, shuffled between groups: all of it stays where it lies.
TEST(Layouts, JoinsAndShufflesStayInTheRegion) {
  Builder b("shuffle");
  const Var x = b.input("x", {kType, {1, 8, 6, 6}});
  const Var w = b.weight("w", {kType, {8, 8, 1, 1}}, {ir::Init::Kind::kNormal, 0, 0.1});
  const Var left = b.call1("conv", {x, w});
  const Var right = b.call1("conv", {left, w});
  const Var joined = b.call1("concat", {left, right}, {{"axis", std::int64_t{1}}});
  const Var scaled =
      b.call1("mul", {joined, b.weight("s", {kType, {16, 1, 1}}, {ir::Init::Kind::kNormal, 0, 1})});
  const Var apart = b.call1("reshape", {scaled}, {{"shape", ir::Ints{1, 2, 8, 6, 6}}});
  const Var swapped = b.call1("transpose", {apart}, {{"perm", ir::Ints{0, 2, 1, 3, 4}}});
  const Var shuffled = b.call1("reshape", {swapped}, {{"shape", ir::Ints{1, 16, 6, 6}}});
  const Var half = b.call1("slice", {shuffled},
                           {{"starts", ir::Ints{0, 4, 0, 0}},
                            {"ends", ir::Ints{1, 12, 6, 6}},
                            {"steps", ir::Ints{1, 1, 1, 1}}});
  const ir::Graph before = *b.finish({b.call1("conv", {half, w})});
  const auto after = choose_layouts(before, {});
  ASSERT_TRUE(after.has_value()) << after.error().message;
  EXPECT_EQ(count_op(*after, "reorder"), 2) << "only at both ends";
  expect_same_outputs(before, *after);
}

// Convolutions with a part on [N, H, W, C] between them, as ConvNeXt's: the turns there and back
// are views, and no tensor is reordered but at both ends.
TEST(Layouts, TurnsToChannelsAtTheEndMoveNothing) {
  Builder b("turns");
  const Var x = b.input("x", {kType, {2, 8, 6, 5}});
  const Var w = b.weight("w", {kType, {8, 8, 1, 1}}, {ir::Init::Kind::kNormal, 0, 0.1});
  const Var m = b.weight("m", {kType, {8, 8}}, {ir::Init::Kind::kNormal, 0, 0.1});
  const Var first = b.call1("conv", {x, w});
  const Var there = b.call1("transpose", {first}, {{"perm", ir::Ints{0, 2, 3, 1}}});
  const Var mixed = b.call1("matmul", {there, m});
  const Var back = b.call1("transpose", {mixed}, {{"perm", ir::Ints{0, 3, 1, 2}}});
  const ir::Graph before = *b.finish({b.call1("conv", {b.call1("add", {first, back}), w})});
  const auto after = choose_layouts(before, {});
  ASSERT_TRUE(after.has_value()) << after.error().message;
  EXPECT_EQ(count_op(*after, "reorder"), 2) << "only at both ends";
  int views = 0;
  for (const ir::Node& node : after->nodes) {
    if (node.op != "transpose") continue;
    views += !ops::definition_of(node)
                  .views(ops::call_of(*after, node), ops::output_types(*after, node))
                  .empty();
  }
  EXPECT_EQ(views, 2);
  expect_same_outputs(before, *after);
}

TEST(Layouts, MakeOneChannelsLastRegionBehindTheStem) {
  const ir::Graph before = *simplify(small_network());
  const auto after = choose_layouts(before, {});
  ASSERT_TRUE(after.has_value()) << after.error().message;
  const ir::Layout last = ir::Layout::channels_last(4);
  for (const ir::Node& node : after->nodes) {
    const bool stem = node.op == "conv" && after->value(node.inputs[0]).type.shape[1] == 3;
    if (node.op == "max_pool" || node.op == "add_relu" || (node.op == "conv" && !stem)) {
      EXPECT_EQ(after->value(node.inputs[0]).type.layout, last) << node.op;
      EXPECT_EQ(after->value(node.outputs[0]).type.layout, last) << node.op;
    }
    if (stem) {
      EXPECT_TRUE(after->value(node.inputs[0]).type.layout.is_row_major());
    }
  }
  EXPECT_EQ(count_op(*after, "reorder"), 1) << "only behind the stem";
  expect_same_outputs(before, *after);
}

TEST(Layouts, ReorderWeightsAsTheKernelAsksOncePerUse) {
  const ir::Graph before = *simplify(small_network());
  const ir::Layout blocked = *ir::parse_layout("@0123:16b1:16b0");
  const auto after =
      choose_layouts(before, {.weights_layout = [&](const ir::Graph&, const ir::Node& node) {
                       return node.op == "conv" ? blocked : ir::Layout{};
                     }});
  ASSERT_TRUE(after.has_value()) << after.error().message;
  for (const ir::Node& node : after->nodes) {
    if (node.op == "conv") {
      EXPECT_EQ(after->value(node.inputs[1]).type.layout, blocked);
    }
    if (node.op == "conv_grad_input") {
      EXPECT_TRUE(after->value(node.inputs[1]).type.layout.is_row_major());
    }
  }
  expect_same_outputs(before, *after);
}

TEST(Layouts, AKernelIsAskedOnceForConvolutionsAlike) {
  Builder b("alike");
  Var x = b.input("x", {kType, {1, 16, 6, 6}});
  const ir::Attributes window{
      {"strides", ir::Ints{1, 1}}, {"pads", ir::Ints{1, 1, 1, 1}}, {"dilations", ir::Ints{1, 1}}};
  for (const std::int64_t channels : {16, 16, 16, 32, 16, 16}) {
    const std::string name = fmt::format("w{}", b.graph().nodes.size());
    const Var w = b.weight(name, {kType, {channels, x.dim(1), 3, 3}}, {});
    x = b.call1("conv", {x, w}, window);
  }
  const auto graph = b.finish({x});
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  int asked = 0;
  const ir::Layout blocked = *ir::parse_layout("@0123:16b1:16b0");
  const auto after = choose_layouts(
      *graph, {.weights_layout = asked_once([&](const ir::Graph& alone, const ir::Node& node) {
                 EXPECT_EQ(alone.nodes.size(), 1u) << node.op;
                 ++asked;
                 return blocked;
               })});
  ASSERT_TRUE(after.has_value()) << after.error().message;
  EXPECT_EQ(asked, 3) << "16 to 16, to 32 and back";
  for (const ir::Node& node : after->nodes) {
    if (node.op != "conv") continue;
    EXPECT_EQ(after->value(node.inputs[1]).type.layout, blocked);
  }
}

TEST(Layouts, AReorderedOutputKeepsItsName) {
  Builder b("name");
  const Var x = b.input("x", {kType, {1, 4, 6, 6}});
  const Var w = b.weight("w", {kType, {4, 4, 3, 3}}, {ir::Init::Kind::kNormal, 0, 0.1});
  const ir::Attributes window{
      {"strides", ir::Ints{1, 1}}, {"pads", ir::Ints{1, 1, 1, 1}}, {"dilations", ir::Ints{1, 1}}};
  const Var y = b.call1("conv", {b.call1("conv", {x, w}, window), w}, window);
  b.graph().value(y.id()).name = "logits";
  const auto after = choose_layouts(*b.finish({y}), {});
  ASSERT_TRUE(after.has_value()) << after.error().message;
  EXPECT_EQ(after->value(after->outputs.front()).name, "logits");
}

TEST(Layouts, LeaveAGraphWithoutConvolutionsAlone) {
  Builder b("dense");
  const Var x = b.input("x", {kType, {2, 3, 4, 5}});
  const ir::Graph before = *b.finish({b.call1("relu", {x})});
  EXPECT_EQ(*choose_layouts(before, {}), before);
}

}  // namespace
}  // namespace plimsoll::rewrite
