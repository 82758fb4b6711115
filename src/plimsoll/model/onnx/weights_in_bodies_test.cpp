// Weights of an .onnx file without its graph (read_onnx_weights), also those of bodies.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "plimsoll/base/file.h"
#include "plimsoll/model/onnx/testing/file_pieces.h"
#include "plimsoll/model/onnx_import.h"

namespace plimsoll::model {
namespace {

using namespace onnx::file_pieces;

constexpr std::int64_t kFloat = 1;

std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), 4 * values.size()};
}
std::string constant(const std::string& name, const std::vector<float>& values) {
  const std::string content =
      tensor("", kFloat, {static_cast<std::int64_t>(values.size())}, floats(values));
  return node("Constant", {}, {name},
              {onnx::WireWriter().bytes(1, "value").bytes(5, content).integer(20, 4).take()});
}
std::filesystem::path written(const std::string& model_bytes) {
  auto path = std::filesystem::path(testing::TempDir()) /
              ("bodies_" + std::to_string(::getpid()) + ".onnx");
  EXPECT_TRUE(write_file(path, model_bytes));
  return path;
}
float first_of(const store::WeightSource& source, std::string_view name) {
  const auto* entry = source.find(name);
  float out = -1;
  if (entry != nullptr) std::memcpy(&out, entry->bytes.data(), 4);
  return out;
}

// As Silero's voice detector has them: a network for each sampling rate, in branches of an If.
TEST(OnnxWeights, ThoseOfBranchesAreFound) {
  const std::string inner =
      graph({.nodes = {constant("deep", {7, 7})}, .inputs = {}, .outputs = {}});
  const std::string branch_a =
      graph({.nodes = {constant("weight", {1, 2}), constant("own", {3, 4}),
                       node("If", {"c"}, {"z"}, {body("then_branch", inner)})},
             .inputs = {},
             .outputs = {}});
  const std::string branch_b = graph({.nodes = {constant("weight", {5, 6}), constant("one", {9})},
                                      .initializers = {tensor("bias", kFloat, {2}, floats({8, 8}))},
                                      .inputs = {},
                                      .outputs = {}});
  const auto path = written(
      model(graph({.nodes = {node("If", {"c"}, {"y"},
                                  {body("then_branch", branch_a), body("else_branch", branch_b)})},
                   .initializers = {tensor("outer", kFloat, {2}, floats({10, 11}))}})));
  const auto source = read_onnx_weights(path);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ(source->size(), 6u);
  EXPECT_EQ(first_of(*source, "outer"), 10);
  EXPECT_EQ(first_of(*source, "weight"), 1);
  EXPECT_EQ(first_of(*source, "own"), 3);
  EXPECT_EQ(first_of(*source, "deep"), 7);
  EXPECT_EQ(first_of(*source, "bias"), 8);
  EXPECT_EQ(first_of(*source, "y/else_branch/weight"), 5) << "a name that two branches have";
  EXPECT_EQ(source->find("one"), nullptr) << "a single number is no weight";
}

TEST(OnnxWeights, BodiesThatAreNestedWithoutEndAreRefused) {
  std::string inside = graph({.nodes = {constant("w", {1, 2})}, .inputs = {}, .outputs = {}});
  for (int i = 0; i < 40; ++i)
    inside = graph({.nodes = {node("If", {"c"}, {"y"}, {body("then_branch", inside)})},
                    .inputs = {},
                    .outputs = {}});
  const auto source = read_onnx_weights(written(model(inside)));
  ASSERT_FALSE(source);
  EXPECT_NE(source.error().message.find("nested more than"), std::string::npos)
      << source.error().message;
}

}  // namespace
}  // namespace plimsoll::model
