// Random numbers of a file are drawn from the counter of the step.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plimsoll/model/onnx/testing/backend_case.h"
#include "plimsoll/model/onnx/testing/file_pieces.h"

namespace plimsoll::model::onnx {
namespace {

using namespace file_pieces;

constexpr std::int64_t kRows = 200;
constexpr std::int64_t kColumns = 300;

Result<ImportedModel> imported_nodes(const std::vector<std::string>& nodes) {
  const std::string file = model(graph({.nodes = nodes,
                                        .inputs = {value("x", 1, {kRows, kColumns})},
                                        .outputs = {value("y", 1, {kRows, kColumns})}}));
  return import_onnx_bytes({reinterpret_cast<const std::byte*>(file.data()), file.size()});
}

// y in the first step where every x is 0.25, or in a later one.
Result<std::vector<double>> drawn(const std::vector<std::string>& nodes, std::int64_t step = 0) {
  PLIMSOLL_TRY(const ImportedModel model, imported_nodes(nodes));
  std::vector<NamedArray> sources{
      {"x", ops::Array::of_reals({kRows, kColumns}, std::vector<double>(kRows * kColumns, 0.25),
                                 ir::DType::kF32)}};
  if (step > 0)
    sources.push_back({"random_counter", ops::Array::of_integers({}, {step}, ir::DType::kU64)});
  PLIMSOLL_TRY(const auto outputs, run_reference(model, sources));
  return outputs.front().reals;
}

struct Moments {
  double mean = 0;
  double deviation = 0;
};
Moments moments(const std::vector<double>& numbers) {
  double sum = 0;
  double squares = 0;
  for (const double number : numbers) {
    sum += number;
    squares += number * number;
  }
  const auto count = static_cast<double>(numbers.size());
  return {sum / count, std::sqrt(squares / count - sum * sum / (count * count))};
}

TEST(RandomNumbers, OfUniformAndNormalNodesHaveTheirMoments) {
  const auto uniform = drawn({node("RandomUniformLike", {"x"}, {"y"})});
  ASSERT_TRUE(uniform) << uniform.error().message;
  EXPECT_NEAR(moments(*uniform).mean, 0.5, 0.005);
  EXPECT_NEAR(moments(*uniform).deviation, std::sqrt(1.0 / 12), 0.003);
  const auto normal = drawn({node("RandomNormalLike", {"x"}, {"y"})});
  ASSERT_TRUE(normal) << normal.error().message;
  EXPECT_NEAR(moments(*normal).mean, 0, 0.017);  // four standard errors
  EXPECT_NEAR(moments(*normal).deviation, 1, 0.012);
}

TEST(RandomNumbers, BernoulliIsOneWithItsProbability) {
  const auto y = drawn({node("Bernoulli", {"x"}, {"y"})});
  ASSERT_TRUE(y) << y.error().message;
  for (const double number : *y) ASSERT_TRUE(number == 0 || number == 1);
  EXPECT_NEAR(moments(*y).mean, 0.25, 0.008);
}

TEST(RandomNumbers, AreTheSameAgainInAStepAndOthersInTheNext) {
  const std::vector<std::string> nodes{node("RandomUniformLike", {"x"}, {"y"})};
  const auto first = drawn(nodes);
  ASSERT_TRUE(first);
  EXPECT_EQ(*first, *drawn(nodes));
  EXPECT_NE(*first, *drawn(nodes, 1));
}

TEST(RandomNumbers, OfTwoNodesDiffer) {
  const auto y = drawn({node("RandomUniformLike", {"x"}, {"a"}),
                        node("RandomUniformLike", {"x"}, {"b"}), node("Sub", {"a", "b"}, {"y"})});
  ASSERT_TRUE(y) << y.error().message;
  EXPECT_NEAR(moments(*y).deviation, std::sqrt(1.0 / 6), 0.005);
}

TEST(RandomNumbers, OfIntegersAndOfGivenDistributionsAreRefused) {
  const auto whole = imported_nodes({node("RandomUniformLike", {"x"}, {"n"}, {integer("dtype", 7)}),
                                     node("Cast", {"n"}, {"y"}, {integer("to", 1)})});
  ASSERT_FALSE(whole);
  EXPECT_THAT(whole.error().message, testing::HasSubstr("type int64 are not supported"));
  const auto multinomial = imported_nodes({node("Multinomial", {"x"}, {"y"})});
  ASSERT_FALSE(multinomial);
  EXPECT_THAT(multinomial.error().message, testing::HasSubstr("not supported"));
}

}  // namespace
}  // namespace plimsoll::model::onnx
