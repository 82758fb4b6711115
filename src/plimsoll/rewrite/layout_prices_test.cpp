// Layouts by price, on laws that a test can add up: what the rule would have made, what is cheaper,
// and on random networks the cheapest of all.
#include "plimsoll/rewrite/layout_prices.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "plimsoll/ops/evaluation/interpreter.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/layouts.h"
#include "plimsoll/rewrite/testing/random_sources.h"

namespace plimsoll::rewrite {
namespace {

using ops::Builder;
using ops::Var;

constexpr ir::DType kNumbers = ir::DType::kF32;
constexpr double kSecondsPerElement = 1e-6;

// A reorder or a real transpose takes its elements, a convolution what is said of its layout, and
// everything else nothing.
struct Law {
  double conv_last = 1;  // seconds
  double conv_plain = 1;
  double conv_mixed = 1;  // an image as it comes, a result in another layout
  bool knows_convolutions = true;

  LayoutPrice operator()(const ir::Graph& graph, const ir::Node& node) const {
    const ir::TensorType& x = graph.value(node.inputs[0]).type;
    const ir::TensorType& y = graph.value(node.outputs[0]).type;
    if (node.op == "reorder") return moved(x);
    if (node.op == "transpose") {
      const bool view = !ops::definition_of(node)
                             .views(ops::call_of(graph, node), ops::output_types(graph, node))
                             .empty();
      return view ? LayoutPrice{0, true} : moved(x);
    }
    if (!convolution_form(node)) return {0, node.op != "relu"};
    const bool last = x.layout == ir::Layout::channels_last(4);
    const double seconds = x.layout != y.layout ? conv_mixed : last ? conv_last : conv_plain;
    return {seconds, knows_convolutions};
  }

 private:
  static LayoutPrice moved(const ir::TensorType& type) {
    return {kSecondsPerElement * static_cast<double>(type.shape.elements()), false};
  }
};

double total(const ir::Graph& graph, const Law& law) {
  double out = 0;
  for (const ir::Node& node : graph.nodes) out += law(graph, node).seconds;
  return out;
}

std::int64_t reorders(const ir::Graph& graph) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [](const ir::Node& node) { return node.op == "reorder"; });
}

void expect_same_numbers(const ir::Graph& before, const ir::Graph& after) {
  const auto sources = normal_sources(before, 7);
  const auto a = ops::interpret(before, sources);
  const auto b = ops::interpret(after, sources);
  ASSERT_TRUE(a) << a.error().message;
  ASSERT_TRUE(b) << b.error().message;
  for (std::size_t i = 0; i < before.outputs.size(); ++i) {
    const ops::Array& want = *(*a)[before.outputs[i].index()];
    const ops::Array& have = *(*b)[after.outputs[i].index()];
    ASSERT_EQ(before.value(before.outputs[i]).type, after.value(after.outputs[i]).type);
    for (std::int64_t k = 0; k < want.elements(); ++k)
      ASSERT_NEAR(want.number(k), have.number(k), 1e-5 * (1 + std::abs(want.number(k))));
  }
}

struct Both {
  ir::Graph by_rule, by_price;
};
Both laid_out(const ir::Graph& graph, const Law& law, std::int64_t least_channels = 1) {
  LayoutOptions options;
  options.least_channels = least_channels;
  const auto by_rule = choose_layouts(graph, options);
  options.price = law;
  const auto by_price = choose_layouts(graph, options);
  EXPECT_TRUE(by_rule && by_price);
  if (!by_rule || !by_price) return {};
  expect_same_numbers(graph, *by_price);
  EXPECT_LE(total(*by_price, law), total(*by_rule, law));
  return {*by_rule, *by_price};
}

Var pointwise_conv(Builder& b, const Var& x, std::int64_t channels) {
  const std::int64_t inputs = b.graph().value(x.id()).type.shape[1];
  const Var w = b.weight(fmt::format("w{}", b.graph().values.size()),
                         {kNumbers, {channels, inputs, 1, 1}}, {ir::Init::Kind::kNormal, 0, 0.1});
  return b.call1("conv", {x, w});
}

// A small result among large row-major operands: the rule turns each of these and the sum.
TEST(LayoutPrices, OneTensorIsTurnedInsteadOfThoseItIsAddedTo) {
  Builder b("sums");
  const ir::TensorType type{kNumbers, {2, 8, 4, 4}};
  Var sum = pointwise_conv(b, b.input("x", type), 8);
  for (const char* name : {"a", "b", "c"}) sum = sum + b.input(name, type);
  const ir::Graph graph = *b.finish({sum});
  for (const bool measured : {true, false}) {
    const Both made = laid_out(graph, {.conv_plain = 2, .knows_convolutions = measured});
    EXPECT_EQ(reorders(made.by_rule), 5);
    EXPECT_EQ(reorders(made.by_price), 2) << "around the convolution";
  }
}

TEST(LayoutPrices, AConvolutionThatIsAsFastRowMajorIsNotTurnedTo) {
  Builder b("alone");
  const Var x = b.input("x", {kNumbers, {4, 16, 1, 1}});
  const ir::Graph graph = *b.finish({b.call1("relu", {pointwise_conv(b, x, 16)})});
  EXPECT_EQ(reorders(laid_out(graph, {1, 1}).by_price), 0);
  EXPECT_EQ(reorders(laid_out(graph, {1, 2}).by_price), 2) << "a second against 128 elements";
  EXPECT_EQ(reorders(laid_out(graph, {1, 1 + 100e-6}).by_price), 0);
  EXPECT_EQ(reorders(laid_out(graph, {1, 1 + 150e-6}).by_price), 2);
}

// Few large tensors between convolutions are enough to keep the region whole.
TEST(LayoutPrices, AConvolutionBetweenOthersStaysWithThem) {
  Builder b("chain");
  Var x = b.input("x", {kNumbers, {1, 8, 4, 4}});
  for (int i = 0; i < 3; ++i) x = b.call1("relu", {pointwise_conv(b, x, 8)});
  const Both made = laid_out(*b.finish({x}), {1, 1 + 100e-6});
  EXPECT_EQ(made.by_price, made.by_rule);
}

TEST(LayoutPrices, ATurnToChannelsAtTheEndIsFreeOnOneSideOnly) {
  Builder b("between turns");
  const Var x = b.input("x", {kNumbers, {2, 5, 4, 8}});
  const Var turned = b.call1("transpose", {x}, {{"perm", ir::Ints{0, 3, 1, 2}}});
  const Var y = pointwise_conv(b, turned, 8);
  const ir::Graph graph = *b.finish({b.call1("transpose", {y}, {{"perm", ir::Ints{0, 2, 3, 1}}})});
  const double turns = 2 * 320 * kSecondsPerElement;
  const Both slow = laid_out(graph, {1, 1 - 0.9 * turns});
  EXPECT_EQ(slow.by_price, slow.by_rule) << "saves less than two transposes";
  const Law fast{1, 1 - 1.1 * turns};
  EXPECT_NEAR(total(laid_out(graph, fast).by_price, fast), fast.conv_plain + turns, 1e-9);
}

// The first convolution of a network, where both ways of it were measured.
TEST(LayoutPrices, AnImageOfThreeChannelsIsTurnedWhereThatIsFaster) {
  Builder b("stem");
  const Var x = b.input("x", {kNumbers, {1, 3, 8, 8}});
  const ir::Graph graph = *b.finish({pointwise_conv(b, pointwise_conv(b, x, 16), 16)});
  Law law{1, 9, 1};
  const auto image_layout = [&](const ir::Graph& laid) {
    const auto stem = std::find_if(laid.nodes.begin(), laid.nodes.end(),
                                   [](const ir::Node& node) { return node.op == "conv"; });
    return laid.value(stem->inputs[0]).type.layout;
  };
  EXPECT_EQ(image_layout(laid_out(graph, law, 8).by_rule), ir::Layout{});
  EXPECT_EQ(image_layout(laid_out(graph, law, 8).by_price), ir::Layout::channels_last(4))
      << "turns 192 elements of the image, not 1024 of blocks";
  law.conv_last += 2000 * kSecondsPerElement;
  const Both kept = laid_out(graph, law, 8);
  EXPECT_EQ(image_layout(kept.by_price), ir::Layout{});
}

TEST(LayoutPrices, TheRuleStandsForConvolutionsThatNobodyMeasured) {
  Builder b("unknown");
  const Var x = b.input("x", {kNumbers, {1, 8, 4, 4}});
  const ir::Graph graph = *b.finish({b.call1("relu", {pointwise_conv(b, x, 8)})});
  Law law{5, 1};
  law.knows_convolutions = false;
  const Both made = laid_out(graph, law);
  EXPECT_EQ(made.by_price, made.by_rule);
}

// Convolutions, sums and turns at random: four to eleven of them, all of which can lie either way.
ir::Graph random_network(Random& random) {
  Builder b("random");
  std::vector<Var> made;
  const auto any = [&]() -> const Var& {
    return made[static_cast<std::size_t>(random.below(std::ssize(made)))];
  };
  const ir::TensorType type{kNumbers, {1, 4, 2, 2}};
  made.push_back(b.input("x", type));
  made.push_back(pointwise_conv(b, made.front(), 4));
  const std::int64_t operators = random.between(3, 9);
  for (std::int64_t i = 0; i < operators; ++i) {
    const std::int64_t kind = random.below(3);
    if (kind == 0) made.push_back(pointwise_conv(b, any(), 4));
    if (kind == 1) made.push_back(any() + any());
    if (kind == 2) made.push_back(b.call1("relu", {any()}));
  }
  std::vector<Var> outputs{made.back()};
  if (random.below(2) == 0) outputs.push_back(made[made.size() / 2]);
  return *b.finish(outputs);
}

// Conversions and convolutions of one choice, added up without a network or a pass.
double cost_of(const ir::Graph& graph, const Law& law, std::uint32_t sides) {
  double out = 0;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].op == "conv") out += (sides >> n & 1) != 0 ? law.conv_last : law.conv_plain;
  }
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ir::Value& value = graph.values[v];
    if (value.kind == ir::ValueKind::kWeight) continue;
    const bool made = value.producer.valid() && (sides >> value.producer.index() & 1) != 0;
    bool other =
        std::find(graph.outputs.begin(), graph.outputs.end(), ValueId(v)) != graph.outputs.end() &&
        made;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const auto& inputs = graph.nodes[n].inputs;
      const bool reads = std::find(inputs.begin(), inputs.end(), ValueId(v)) != inputs.end();
      other = other || (reads && ((sides >> n & 1) != 0) != made);
    }
    if (other) out += kSecondsPerElement * static_cast<double>(value.type.shape.elements());
  }
  return out;
}

TEST(LayoutPrices, AreTheLeastOfAllChoicesOnRandomNetworks) {
  int faster = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const ir::Graph graph = random_network(random);
    const Law law{1, 1 + kSecondsPerElement * static_cast<double>(random.between(-40, 60))};
    const Both made = laid_out(graph, law);
    double least = std::numeric_limits<double>::infinity();
    for (std::uint32_t sides = 0; sides >> graph.nodes.size() == 0; ++sides)
      least = std::min(least, cost_of(graph, law, sides));
    EXPECT_NEAR(total(made.by_price, law), least, 1e-9);
    faster += total(made.by_price, law) < total(made.by_rule, law) - 1e-9;
  }
  EXPECT_GE(faster, 50) << "networks on which the rule is not the best";
}

}  // namespace
}  // namespace plimsoll::rewrite
