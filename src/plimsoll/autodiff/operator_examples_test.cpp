#include "plimsoll/autodiff/testing/operator_examples.h"

#include <set>

#include <gtest/gtest.h>

#include "plimsoll/autodiff/testing/gradient_check.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::autodiff {
namespace {

std::set<std::string> operators_with_examples() {
  std::set<std::string> out;
  for (const OperatorExample& example : operator_examples()) out.insert(example.op);
  return out;
}

TEST(OperatorExamples, CoverEveryDifferentiableOperator) {
  const std::set<std::string> covered = operators_with_examples();
  for (const ops::OpDefinition& definition : ops::registry()) {
    if (!definition.gradient.exists()) continue;
    EXPECT_TRUE(covered.contains(std::string(definition.name)))
        << definition.name << " has no example";
  }
}

TEST(OperatorExamples, CoverEveryOtherOperator) {
  std::set<std::string> covered;
  for (const OperatorExample& example : examples_without_gradient()) covered.insert(example.op);
  for (const ops::OpDefinition& definition : ops::registry()) {
    EXPECT_NE(covered.contains(std::string(definition.name)), definition.gradient.exists())
        << definition.name;
  }
}

TEST(OperatorExamples, NameOnlyOperatorsThatExist) {
  for (const std::string& op : operators_with_examples())
    EXPECT_NE(ops::find_definition(op), nullptr) << op;
}

TEST(GradientCheck, FindsAWrongGradient) {
  // At its kink relu has the gradient 0, differences say 1/2.
  const OperatorExample kink{"relu", "at its kink", {ops::Array::of_reals({1}, {0.0})},
                             {},     false,         {}};
  EXPECT_FALSE(check_first_order(kink).has_value());
}

}  // namespace
}  // namespace plimsoll::autodiff
