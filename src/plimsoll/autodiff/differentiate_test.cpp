#include "plimsoll/autodiff/differentiate.h"

#include <cmath>

#include <gtest/gtest.h>

#include "plimsoll/ops/evaluation/interpreter.h"
#include "plimsoll/ops/functions.h"

namespace plimsoll::autodiff {
namespace {

using ops::Array;

constexpr ir::TensorType scalar_type() {
  return {ir::DType::kF64, {}, {}};
}

// y = ln(x1) + x1*x2 - sin(x2), the example of the header.
struct Worked {
  Builder b{"worked"};
  Var x1 = b.input("x1", scalar_type());
  Var x2 = b.input("x2", scalar_type());
  Var v1 = ops::log(x1);
  Var v2 = x1 * x2;
  Var v3 = ops::sin(x2);
  Var v4 = v1 + v2;
  Var y = v4 - v3;

  std::vector<double> values(const std::vector<Var>& wanted, double at1 = 2, double at2 = 5) {
    const auto all = ops::interpret(
        b.graph(), {{"x1", Array::of_reals({}, {at1})}, {"x2", Array::of_reals({}, {at2})}});
    std::vector<double> out;
    for (const Var& var : wanted) out.push_back((*all)[var.id().index()]->number(0));
    return out;
  }
};

TEST(Differentiate, WorkedExampleHasItsForwardAndReverseTraces) {
  Worked w;
  const std::vector<Var> wrt{w.v4, w.v3, w.v2, w.v1, w.x1, w.x2};
  const auto adjoints = differentiate(w.b, w.y, wrt);
  ASSERT_TRUE(adjoints);
  const auto forward = w.values({w.v1, w.v2, w.v3, w.v4, w.y});
  EXPECT_NEAR(forward[0], 0.693, 5e-4);
  EXPECT_NEAR(forward[1], 10, 1e-12);
  EXPECT_NEAR(forward[2], -0.959, 5e-4);
  EXPECT_NEAR(forward[3], 10.693, 5e-4);
  EXPECT_NEAR(forward[4], 11.652, 5e-4);
  const auto reverse = w.values(*adjoints);
  EXPECT_DOUBLE_EQ(reverse[0], 1);
  EXPECT_DOUBLE_EQ(reverse[1], -1);
  EXPECT_DOUBLE_EQ(reverse[2], 1);
  EXPECT_DOUBLE_EQ(reverse[3], 1);
  EXPECT_DOUBLE_EQ(reverse[4], 5.5);
  EXPECT_NEAR(reverse[5], 1.716, 5e-4);
}

TEST(Differentiate, FullHessianByDifferentiatingAgain) {
  Worked w;
  const std::vector<Var> x{w.x1, w.x2};
  const auto gradient = differentiate(w.b, w.y, x);
  ASSERT_TRUE(gradient);
  std::vector<Var> rows;
  for (const Var& component : *gradient) {
    const auto row = differentiate(w.b, component, x);
    ASSERT_TRUE(row);
    rows.insert(rows.end(), row->begin(), row->end());
  }
  const auto h = w.values(rows);
  EXPECT_NEAR(h[0], -0.25, 1e-12);  // -1/x1^2
  EXPECT_NEAR(h[1], 1, 1e-12);
  EXPECT_NEAR(h[2], 1, 1e-12);
  EXPECT_NEAR(h[3], std::sin(5.0), 1e-12);
}

TEST(Differentiate, HessianVectorProductWithoutTheHessian) {
  Worked w;
  const std::vector<Var> x{w.x1, w.x2};
  const auto gradient = differentiate(w.b, w.y, x);
  ASSERT_TRUE(gradient);
  const Var along = 3.0 * (*gradient)[0] + 2.0 * (*gradient)[1];  // v = (3, 2)
  const auto product = differentiate(w.b, along, x);
  ASSERT_TRUE(product);
  const auto hv = w.values(*product);
  EXPECT_NEAR(hv[0], -0.25 * 3 + 2, 1e-12);
  EXPECT_NEAR(hv[1], 3 + 2 * std::sin(5.0), 1e-12);
}

TEST(Differentiate, PathsThatLeadNowhereBuildNothing) {
  Builder b("g");
  const Var x = b.input("x", scalar_type());
  const Var z = b.input("z", scalar_type());
  const Var y = ops::exp(x);
  const std::size_t nodes = b.graph().nodes.size();
  const auto adjoints = differentiate(b, y, std::vector<Var>{z});
  ASSERT_TRUE(adjoints);
  EXPECT_FALSE((*adjoints)[0]);
  EXPECT_EQ(b.graph().nodes.size(), nodes + 1);  // the seed alone
}

TEST(Differentiate, SeveralReadersAddTheirAdjointsInOrderOfArrival) {
  Builder b("g");
  const Var x = b.input("x", scalar_type());
  const Var y = x * x + x;
  const auto adjoints = differentiate(b, y, std::vector<Var>{x});
  const auto all = ops::interpret(b.graph(), {{"x", Array::of_reals({}, {3})}});
  EXPECT_DOUBLE_EQ((*all)[(*adjoints)[0].id().index()]->number(0), 7);
}

TEST(Differentiate, RefusesAnIntegerResult) {
  Builder b("g");
  const Var x = b.input("x", {ir::DType::kI64, {}, {}});
  const auto adjoints = differentiate(b, x + x, std::vector<Var>{x});
  ASSERT_FALSE(adjoints);
  EXPECT_NE(adjoints.error().message.find("int64"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::autodiff
