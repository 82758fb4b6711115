// What NonZero finds in a run: rows that are computed each by itself, and scattered.
#include "plimsoll/model/onnx/bounded_axes.h"

#include <cmath>
#include <deque>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/base/random.h"
#include "plimsoll/model/onnx/testing/backend_case.h"
#include "plimsoll/model/onnx/testing/file_pieces.h"

namespace plimsoll::model::onnx {
namespace {

using namespace file_pieces;
using ::testing::HasSubstr;

constexpr std::int64_t kRows = 6;
constexpr std::int64_t kWidth = 3;

// Rows of x whose `chosen` is not zero go through `middle`, from "rows" to "made", and are added to
// zeros at their places.
std::vector<std::string> routed(const std::vector<std::string>& middle) {
  std::vector<std::string> out = {
      node("NonZero", {"chosen"}, {"found"}),
      node("Transpose", {"found"}, {"places"}),
      node("Squeeze", {"places", "one"}, {"list"}),
      node("Gather", {"x", "list"}, {"rows"}),
  };
  out.insert(out.end(), middle.begin(), middle.end());
  out.push_back(node("ScatterND", {"zeros", "places", "made"}, {"y"}, {text("reduction", "add")}));
  return out;
}

Result<ImportedModel> import_nodes(const std::vector<std::string>& nodes,
                                   const Capacity& capacity = {},
                                   const std::vector<std::int64_t>& result = {kRows, kWidth}) {
  static std::deque<std::string> files;  // models read their weights there
  const std::string& file = files.emplace_back(model(graph(
      {.nodes = nodes,
       .initializers = {tensor("one", 7, {1}, int64s({1})), tensor("axis", 7, {1}, int64s({0})),
                        tensor("two", 7, {2}, int64s({1, 1})),
                        tensor("zeros", 1, {kRows, kWidth}, std::string(kRows * kWidth * 4, '\0'))},
       .inputs = {value("x", 1, {kRows, kWidth}), value("chosen", 7, {kRows})},
       .outputs = {value("y", 1, result)}})));
  ImportOptions how;
  how.capacity = capacity;
  return import_onnx_bytes({reinterpret_cast<const std::byte*>(file.data()), file.size()}, how);
}

std::string refusal(const std::vector<std::string>& nodes) {
  const auto model = import_nodes(nodes);
  EXPECT_FALSE(model);
  return model ? "" : model.error().message;
}

Result<std::vector<double>> evaluate(const ImportedModel& model, const std::vector<double>& x,
                                     const std::vector<std::int64_t>& chosen) {
  PLIMSOLL_TRY(
      const auto outputs,
      run_reference(model, {{"x", ops::Array::of_reals({kRows, kWidth}, x, ir::DType::kF32)},
                            {"chosen", ops::Array::of_integers({kRows}, chosen)}}));
  return outputs.front().reals;
}

const std::vector<std::string> kExpert = {node("Exp", {"rows"}, {"made"})};

// Exp of a row that is not there would be one, not zero: it must go nowhere.
TEST(BoundedAxes, RowsThatAreFoundAreComputedAndNoOthers) {
  const auto model = import_nodes(routed(kExpert));
  ASSERT_TRUE(model) << model.error().message;
  Random random(7);
  for (std::int64_t mask = 0; mask < (1 << kRows); ++mask) {
    std::vector<double> x(kRows * kWidth);
    std::vector<double> expected(x.size());
    std::vector<std::int64_t> chosen(kRows);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t row = i / kWidth;
      x[i] = static_cast<float>(random.uniform());
      chosen[row] = (mask >> row & 1) * -3;
      expected[i] = chosen[row] != 0 ? std::exp(x[i]) : 0;
    }
    const auto y = evaluate(*model, x, chosen);
    ASSERT_TRUE(y) << y.error().message;
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR((*y)[i], expected[i], 1e-6) << mask;
  }
}

TEST(BoundedAxes, WhatFindsMoreThanTheCapacityGivesNan) {
  Capacity half;
  half.share = 0.5;
  Capacity three;
  three.count = 3;
  for (const Capacity& capacity : {half, three}) {
    const auto model = import_nodes(routed(kExpert), capacity);
    ASSERT_TRUE(model) << model.error().message;
    const std::vector<double> x(kRows * kWidth, 0);
    const auto fits = evaluate(*model, x, {1, 0, 0, 1, 1, 0});
    ASSERT_TRUE(fits) << fits.error().message;
    EXPECT_EQ(*fits, (std::vector<double>{1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0}));
    const auto more = evaluate(*model, x, {1, 0, 1, 1, 1, 0});
    ASSERT_TRUE(more) << more.error().message;
    for (const double number : *more) EXPECT_TRUE(std::isnan(number));
  }
}

TEST(BoundedAxes, TheCapacityIsTheMemory) {
  Capacity two;
  two.count = 2;
  for (const auto& [capacity, rows] :
       {std::pair{Capacity{}, kRows}, std::pair{two, std::int64_t{2}}}) {
    const auto model = import_nodes(routed(kExpert), capacity);
    ASSERT_TRUE(model) << model.error().message;
    std::int64_t found = 0;
    for (const ir::Node& node : model->graph.nodes) {
      if (node.op == "exp") found = model->graph.value(node.outputs[0]).type.shape[0];
    }
    EXPECT_EQ(found, rows);
  }
}

TEST(BoundedAxes, AFixedNumberOfPartsIsACapacity) {
  // Two of the six, each by itself: as exporters unroll a loop over the experts that were hit.
  const std::vector<std::string> nodes = {
      node("NonZero", {"chosen"}, {"found"}),
      node("Split", {"found", "two"}, {"first", "second"}, {integer("axis", 1)}),
      node("Concat", {"first", "second"}, {"both"}, {integer("axis", 1)}),
      node("Squeeze", {"both", "axis"}, {"list"}), node("Gather", {"x", "list"}, {"y"})};
  const auto model = import_nodes(nodes, {}, {2, kWidth});
  ASSERT_TRUE(model) << model.error().message;
  std::vector<double> x(kRows * kWidth);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i);
  const auto y = evaluate(*model, x, {0, 1, 0, 0, 0, 1});
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_EQ(*y, (std::vector<double>{3, 4, 5, 15, 16, 17}));
  const auto one = evaluate(*model, x, {0, 1, 0, 0, 0, 0});
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(*one, (std::vector<double>{3, 4, 5, 0, 0, 0}));
  const auto three = evaluate(*model, x, {1, 1, 0, 0, 0, 1});
  ASSERT_TRUE(three) << three.error().message;
  EXPECT_TRUE(std::isnan(three->front()));
  // What the file says goes before what is asked for.
  Capacity one_only;
  one_only.count = 1;
  const auto asked = import_nodes(nodes, one_only, {2, kWidth});
  ASSERT_TRUE(asked) << asked.error().message;
  EXPECT_EQ(*evaluate(*asked, x, {0, 1, 0, 0, 0, 1}), *y);
}

TEST(BoundedAxes, RowsThatAreMixedAreRefusedByName) {
  EXPECT_THAT(refusal(routed({node("Softmax", {"rows"}, {"made"}, {integer("axis", 0)})})),
              HasSubstr("softmax"));
  EXPECT_THAT(refusal(routed({node("CumSum", {"rows", "axis"}, {"made"})})), HasSubstr("cumsum"));
  EXPECT_THAT(refusal(routed({node("ReduceMean", {"rows"}, {"mean"}, {integer("keepdims", 1)}),
                              node("Sub", {"rows", "mean"}, {"made"})})),
              HasSubstr("reduce"));
  EXPECT_THAT(
      refusal({node("NonZero", {"chosen"}, {"found"}), node("Squeeze", {"found", "axis"}, {"list"}),
               node("Gather", {"x", "list"}, {"y"})}),
      HasSubstr("output 'y'"));
}

}  // namespace
}  // namespace plimsoll::model::onnx
