#include "plimsoll/rewrite/lay_out_weights.h"

#include <gtest/gtest.h>

#include "plimsoll/ops/functions.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/layouts.h"

namespace plimsoll::rewrite {
namespace {

using ops::Builder;
using ops::Var;

struct TrainedLayer {
  ir::DType compute = ir::DType::kF32;
  bool reads_weight_plain = false;
};

// A convolution with the update of its weight, laid out as a card wants it.
ir::Graph trained_layer(const TrainedLayer& how) {
  Builder b("layer");
  const ir::TensorType type{ir::DType::kF32, {8, 8, 3, 3}, {}};
  const Var x = b.input("x", {how.compute, {1, 8, 4, 4}, {}});
  const Var dy = b.input("dy", {how.compute, {1, 8, 4, 4}, {}});
  const Var w = b.weight("w", type, {});
  const Var m = b.weight("m", type, {});
  const ops::ConvOptions options{.pads = {1, 1, 1, 1}};
  const Var y = ops::conv(x, cast(w, how.compute), {}, options);
  std::vector<Var> outputs{y};
  if (how.reads_weight_plain) outputs.push_back(ops::sum(w));
  b.set_phase(ir::Phase::kBackward);
  const Var dw = b.call1("conv_grad_weight", {x, dy},
                         {{"pads", ir::Ints{1, 1, 1, 1}}, {"shape", ir::Ints{8, 8, 3, 3}}});
  b.set_phase(ir::Phase::kUpdate);
  const auto made = b.call("momentum", {w, dw, m}, {{"lr", 0.1}});
  b.update(w, made[0]);
  b.update(m, made[1]);
  auto graph = b.finish(outputs);
  EXPECT_TRUE(graph) << graph.error().message;
  LayoutOptions layouts;
  layouts.weights_layout = [](const ir::Graph&, const ir::Node&) {
    return ir::Layout::channels_last(4);
  };
  return *choose_layouts(*graph, layouts);
}

int reorders_counted(const ir::Graph& graph, std::string_view op) {
  int out = 0;
  for (const ir::Node& node : graph.nodes) out += node.op == op;
  return out;
}

const ir::Value& source_named(const ir::Graph& graph, std::string_view name) {
  for (const ir::Value& value : graph.values) {
    if (value.name == name) return value;
  }
  ADD_FAILURE() << name;
  return graph.values.front();
}

TEST(LayOutWeights, WeightsMomentsAndUpdatesLieAsConvolutionsWant) {
  const ir::Graph before = trained_layer({});
  const auto after = lay_out_weights(before);
  ASSERT_TRUE(after) << after.error().message;
  // What is left turns the data and the result.
  EXPECT_EQ(reorders_counted(*after, "reorder") + 2, reorders_counted(before, "reorder"));
  for (const char* name : {"w", "m"})
    EXPECT_EQ(source_named(*after, name).type.layout, ir::Layout::channels_last(4)) << name;
  for (const ir::Update& update : after->updates)
    EXPECT_EQ(after->value(update.next).type, after->value(update.source).type);
}

TEST(LayOutWeights, ReachesThroughTheCastsOfMixedPrecision) {
  const ir::Graph before = trained_layer({.compute = ir::DType::kBF16});
  const auto after = lay_out_weights(before);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_LT(reorders_counted(*after, "reorder"), reorders_counted(before, "reorder"));
}

TEST(LayOutWeights, AWeightThatOthersReadStaysPlain) {
  const ir::Graph before = trained_layer({.reads_weight_plain = true});
  const auto after = lay_out_weights(before);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(*after, before);
}

}  // namespace
}  // namespace plimsoll::rewrite
