#include "plimsoll/plan/check_views.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/functions.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/plan/testing/random_graph.h"

namespace plimsoll::plan {
namespace {

// Bytes at which the value begins in its node's input, or -1 when it has to be computed.
std::int64_t place_of(const ir::Graph& graph, ops::Var view) {
  const ir::Node& node = graph.node(graph.value(view.id()).producer);
  const auto pieces = pieces_of_view(graph, node, 0);
  return pieces.size() == 1 ? pieces[0].from : -1;
}

TEST(CheckViews, APartIsAViewWhereItIsOneRunOfBytes) {
  ops::Builder b("views");
  const ops::Var x = b.input("x", {ir::DType::kF32, {4, 6}});
  const ops::Var rows = slice(x, 0, 1, 3);
  const ops::Var columns = slice(x, 1, 1, 4);
  const ops::Var part_of_a_row = slice(slice(x, 0, 2, 3), 1, 1, 4);
  const ops::Var flat = reshape(x, {24});
  const ops::Var sum = x + x;
  const ir::Graph& graph = b.graph();
  EXPECT_EQ(place_of(graph, rows), 24);
  EXPECT_EQ(place_of(graph, columns), -1);
  EXPECT_EQ(place_of(graph, part_of_a_row), 4);
  EXPECT_EQ(place_of(graph, flat), 0);
  EXPECT_EQ(place_of(graph, sum), -1);
}

TEST(CheckViews, ChannelsThatLieInnermostAreNoRunOfBytes) {
  ops::Builder b("layout");
  const ops::Var x = b.input("x", {ir::DType::kF32, {1, 4, 5, 5}});
  const ops::Var two = slice(x, 1, 1, 3);
  EXPECT_EQ(place_of(b.graph(), two), 100);
  b.graph().value(x.id()).type.layout = ir::Layout::channels_last(4);
  EXPECT_EQ(place_of(b.graph(), two), -1);
}

// As where channels change groups: channels last, a split of the channels moves nothing.
TEST(CheckViews, AReshapeIsAViewWhereEveryElementStays) {
  ops::Builder b("groups");
  const ops::Var x = b.input("x", {ir::DType::kF32, {2, 4, 5, 5}});
  const ops::Var grouped = reshape(x, {2, 2, 2, 5, 5});
  const ops::Var flat = reshape(x, {2, 100});
  ir::TensorType& in = b.graph().value(x.id()).type;
  ir::TensorType& out = b.graph().value(grouped.id()).type;
  EXPECT_EQ(place_of(b.graph(), grouped), 0);
  in.layout = ir::Layout::channels_last(4);
  EXPECT_EQ(place_of(b.graph(), grouped), -1);
  EXPECT_EQ(place_of(b.graph(), flat), -1);
  out.layout = *ir::parse_layout("@03412");
  EXPECT_EQ(place_of(b.graph(), grouped), 0);
  out.layout = *ir::parse_layout("@03421");
  EXPECT_EQ(place_of(b.graph(), grouped), -1);
}

TEST(CheckViews, ATranspositionIsAViewWhereNoElementMoves) {
  ops::Builder b("permutation");
  const ops::Var x = b.input("x", {ir::DType::kF32, {2, 4, 5, 3}});
  const ops::Var last = transpose(x, {0, 2, 3, 1});
  const ops::Var one = transpose(slice(x, 1, 0, 1), {0, 2, 3, 1});
  const ops::Var laid = reorder(x, ir::Layout::channels_last(4));
  EXPECT_EQ(place_of(b.graph(), last), -1);
  EXPECT_EQ(place_of(b.graph(), laid), -1);
  EXPECT_EQ(place_of(b.graph(), one), 0) << "only an axis of one place moved";
  b.graph().value(x.id()).type.layout = ir::Layout::channels_last(4);
  EXPECT_EQ(place_of(b.graph(), last), 0);
  EXPECT_EQ(place_of(b.graph(), laid), 0);
  b.graph().value(last.id()).type.layout = *ir::parse_layout("@0213");
  EXPECT_EQ(place_of(b.graph(), last), -1);
}

TEST(CheckViews, AConcatConsistsOfItsPartsAlongTheOuterAxisOnly) {
  ops::Builder b("join");
  const ops::Var x = b.input("x", {ir::DType::kF32, {2, 3}});
  const ops::Var y = b.input("y", {ir::DType::kF32, {1, 3}});
  const ops::Var below = ops::concat({x, y}, 0);
  const ops::Var beside = ops::concat({x, x}, 1);
  const ir::Graph& graph = b.graph();
  const auto pieces = [&](ops::Var value) {
    return pieces_of_view(graph, graph.node(graph.value(value.id()).producer), 0);
  };
  ASSERT_EQ(pieces(below).size(), 2u);
  EXPECT_EQ(pieces(below)[1].value, y.id());
  EXPECT_EQ(pieces(below)[1].begin, 24);
  EXPECT_EQ(pieces(below)[1].bytes, 12);
  EXPECT_TRUE(pieces(beside).empty());
}

// The planner's rules and ours were written apart; where theirs see a view, so do ours, in the same
// place.
TEST(CheckViews, AgreesWithTheOperatorsOwnRules) {
  int views = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const ir::Graph graph = random_graph(seed);
    for (const ir::Node& node : graph.nodes) {
      const ops::OpDefinition& definition = ops::definition_of(node);
      if (definition.views == nullptr) continue;
      for (const ops::View& view :
           definition.views(ops::call_of(graph, node), ops::output_types(graph, node))) {
        const auto pieces = pieces_of_view(graph, node, static_cast<std::size_t>(view.output));
        const ValueId input = node.inputs[static_cast<std::size_t>(view.input)];
        if (ir::bytes_of(graph.value(input).type).value == 0) continue;
        ++views;
        const bool found = std::any_of(pieces.begin(), pieces.end(), [&](const ViewPiece& piece) {
          return piece.value == input &&
                 (view.input_inside ? piece.begin : piece.from) == view.offset.value;
        });
        EXPECT_TRUE(found) << "seed " << seed << " " << node.op;
      }
    }
  }
  EXPECT_GT(views, 30);
}

}  // namespace
}  // namespace plimsoll::plan
