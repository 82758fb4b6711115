#include "plimsoll/autodiff/operator_examples.h"

#include <set>

#include <gtest/gtest.h>

#include "plimsoll/autodiff/gradient_check.h"
#include "plimsoll/ops/cards.h"
#include "plimsoll/ops/catalogue.h"

namespace plimsoll::autodiff {
namespace {

std::set<std::string> operators_with_examples() {
  std::set<std::string> out;
  for (const OperatorExample& example : operator_examples()) out.insert(example.op);
  return out;
}

// The families nn_examples() answers for. As long as it is empty they are left out, so that either
// half of the catalogue can be checked alone.
std::set<std::string_view> left_out() {
  std::set<std::string_view> out;
  if (!nn_examples().empty()) return out;
  for (const auto family :
       {ops::matmul_cards, ops::linear_cards, ops::conv_cards, ops::attention_cards,
        ops::batch_norm_cards, ops::layer_norm_cards, ops::group_norm_cards, ops::lrn_cards,
        ops::softmax_cards, ops::loss_cards, ops::add_relu_cards, ops::pool_cards,
        ops::update_cards}) {
    for (const ops::Card& card : family()) out.insert(card.name);
  }
  return out;
}

TEST(OperatorExamples, CoverEveryDifferentiableOperator) {
  const std::set<std::string> covered = operators_with_examples();
  const std::set<std::string_view> exempt = left_out();
  for (const ops::Card& card : ops::catalogue()) {
    if (!card.gradient.exists() || exempt.contains(card.name)) continue;
    EXPECT_TRUE(covered.contains(std::string(card.name))) << card.name << " has no example";
  }
}

TEST(OperatorExamples, NameOnlyOperatorsThatExist) {
  for (const std::string& op : operators_with_examples())
    EXPECT_NE(ops::find_card(op), nullptr) << op;
}

TEST(GradientCheck, FindsAWrongGradient) {
  // At its kink relu has the gradient 0, differences say 1/2.
  const OperatorExample kink{"relu", "at its kink", {ops::Array::of_reals({1}, {0.0})},
                             {},     false,         {}};
  EXPECT_FALSE(check_first_order(kink).has_value());
}

}  // namespace
}  // namespace plimsoll::autodiff
