// Sequences are resolved at import: the graph has tensors only.
#include <gtest/gtest.h>

#include "plimsoll/model/onnx/testing/backend_case.h"
#include "plimsoll/model/onnx/testing/file_pieces.h"

namespace plimsoll::model::onnx {
namespace {

using namespace file_pieces;

Result<ops::Array> run(const std::vector<std::string>& nodes,
                       const std::vector<std::string>& initializers = {}) {
  const std::string file = model(graph({.nodes = nodes, .initializers = initializers}));
  PLIMSOLL_TRY(const ImportedModel imported,
               import_onnx_bytes({reinterpret_cast<const std::byte*>(file.data()), file.size()}));
  const ops::Array x = ops::Array::of_reals({2, 3}, {1, 2, 3, 4, 5, 6}, ir::DType::kF32);
  PLIMSOLL_TRY(const auto outputs, run_reference(imported, {{"x", x}}));
  return outputs.front();
}

std::string scalar(std::string_view name, std::int64_t number) {
  return tensor(name, 7, {}, int64s({number}));
}

TEST(Sequences, PiecesOfASplitAreReadByPosition) {
  const auto y =
      run({node("SplitToSequence", {"x"}, {"s"}, {integer("axis", 1), integer("keepdims", 0)}),
           node("SequenceAt", {"s", "i"}, {"y"})},
          {scalar("i", -1)});
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_EQ(y->reals, (std::vector<double>{3, 6}));
}

TEST(Sequences, UnevenPiecesJoinAgain) {
  const auto y = run({node("SplitToSequence", {"x", "i"}, {"s"}, {integer("axis", 1)}),
                      node("ConcatFromSequence", {"s"}, {"y"}, {integer("axis", -1)})},
                     {scalar("i", 2)});
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_EQ(y->reals, (std::vector<double>{1, 2, 3, 4, 5, 6}));
}

TEST(Sequences, OfConstantsAreConstants) {
  const auto y = run(
      {node("SplitToSequence", {"s"}, {"pieces"}),
       node("SequenceAt", {"pieces", "one"}, {"columns"}),
       node("SequenceConstruct", {"columns", "rows"}, {"turned"}),
       node("ConcatFromSequence", {"turned"}, {"shape"}, {integer("axis", 0)}),
       node("Reshape", {"x", "shape"}, {"y"})},
      {tensor("s", 7, {2}, int64s({2, 3})), tensor("rows", 7, {1}, int64s({2})), scalar("one", 1)});
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_EQ(y->type.shape, (ir::Shape{3, 2}));
}

TEST(Sequences, InsertingAndErasingMakeNewLists) {
  const auto y =
      run({node("Neg", {"x"}, {"n"}), node("SequenceEmpty", {}, {"a"}),
           node("SequenceInsert", {"a", "x"}, {"b"}),
           node("SequenceInsert", {"b", "n", "zero"}, {"c"}), node("SequenceErase", {"c"}, {"d"}),
           node("SequenceLength", {"b"}, {"l"}), node("SequenceAt", {"d", "zero"}, {"e"}),
           node("Cast", {"l"}, {"f"}, {integer("to", 1)}), node("Add", {"e", "f"}, {"y"})},
          {scalar("zero", 0)});
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_EQ(y->reals, (std::vector<double>{0, -1, -2, -3, -4, -5}));
}

TEST(Sequences, ALoopMayFillOne) {
  const std::string inside = graph(
      {.nodes = {node("Identity", {"go"}, {"go_on"}), node("SequenceInsert", {"v", "x"}, {"w"})},
       .inputs = {value("i", 7, {}), value("go", 9, {}), value("v", 1, {})},
       .outputs = {value("go_on", 9, {}), value("w", 1, {})}});
  const auto y =
      run({node("SequenceEmpty", {}, {"v"}),
           node("Loop", {"n", "", "v"}, {"w"}, {body("body", inside)}),
           node("ConcatFromSequence", {"w"}, {"y"}, {integer("axis", 0), integer("new_axis", 1)})},
          {scalar("n", 3)});
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_EQ(y->type.shape, (ir::Shape{3, 2, 3}));
}

TEST(Sequences, MapRunsItsBodyOnEveryElement) {
  const std::string inside = graph({.nodes = {node("Mul", {"item", "all"}, {"product"})},
                                    .inputs = {value("item", 1, {}), value("all", 1, {})},
                                    .outputs = {value("product", 1, {})}});
  const auto y = run({node("SequenceConstruct", {"x", "x"}, {"s"}),
                      node("SequenceMap", {"s", "x"}, {"m"}, {body("body", inside)}),
                      node("ConcatFromSequence", {"m"}, {"y"}, {integer("axis", 0)})});
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_EQ(y->reals, (std::vector<double>{1, 4, 9, 16, 25, 36, 1, 4, 9, 16, 25, 36}));
}

TEST(Sequences, OptionalValuesAreThemselvesOrAbsent) {
  const auto y =
      run({node("Optional", {"x"}, {"o"}), node("OptionalHasElement", {"o"}, {"h"}),
           node("OptionalGetElement", {"o"}, {"e"}), node("Cast", {"h"}, {"f"}, {integer("to", 1)}),
           node("Add", {"e", "f"}, {"y"})});
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_EQ(y->reals.front(), 2);
}

TEST(Sequences, AreRefusedWhereATensorIsMeant) {
  const auto read = run({node("SequenceConstruct", {"x"}, {"s"}), node("Relu", {"s"}, {"y"})});
  ASSERT_FALSE(read);
  EXPECT_NE(read.error().message.find("'s' is a sequence"), std::string::npos)
      << read.error().message;
  EXPECT_FALSE(run({node("SequenceConstruct", {"x"}, {"y"})}));
  EXPECT_FALSE(run({node("SequenceAt", {"x", "i"}, {"y"})}, {scalar("i", 0)}));
  EXPECT_FALSE(run({node("SequenceConstruct", {"x"}, {"s"}), node("SequenceAt", {"s", "i"}, {"y"})},
                   {scalar("i", 1)}));
  EXPECT_FALSE(run({node("SequenceEmpty", {}, {"s"}),
                    node("ConcatFromSequence", {"s"}, {"y"}, {integer("axis", 0)})}));
}

}  // namespace
}  // namespace plimsoll::model::onnx
