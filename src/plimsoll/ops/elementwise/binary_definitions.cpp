#include <functional>

#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/definition/rules.h"
#include "plimsoll/ops/elementwise/binary.h"
#include "plimsoll/ops/elementwise/binary_evaluation.h"
#include "plimsoll/ops/elementwise/binary_formulas.h"
#include "plimsoll/ops/elementwise/unary.h"
#include "plimsoll/ops/reduction/reduction.h"

namespace plimsoll::ops {
namespace {

std::vector<Var> add_gradient(const Backward& g) {
  return {g.wants(0) ? sum_to(g.dy(), g.in(0).shape()) : Var(),
          g.wants(1) ? sum_to(g.dy(), g.in(1).shape()) : Var()};
}

std::vector<Var> sub_gradient(const Backward& g) {
  return {g.wants(0) ? sum_to(g.dy(), g.in(0).shape()) : Var(),
          g.wants(1) ? sum_to(neg(g.dy()), g.in(1).shape()) : Var()};
}

std::vector<Var> mul_gradient(const Backward& g) {
  return {g.wants(0) ? sum_to(g.dy() * g.in(1), g.in(0).shape()) : Var(),
          g.wants(1) ? sum_to(g.dy() * g.in(0), g.in(1).shape()) : Var()};
}

std::vector<Var> div_gradient(const Backward& g) {
  const Var da = g.dy() / g.in(1);
  return {g.wants(0) ? sum_to(da, g.in(0).shape()) : Var(),
          g.wants(1) ? sum_to(neg(da * g.out(0)), g.in(1).shape()) : Var()};
}

}  // namespace

std::vector<OpDefinition> binary_definitions() {
  return {
      binary_definition("add", add_gradient, evaluate_wrapping<std::plus<>>),
      binary_definition("sub", sub_gradient, evaluate_wrapping<std::minus<>>),
      binary_definition("mul", mul_gradient, evaluate_wrapping<std::multiplies<>>),
      binary_definition("div", div_gradient, evaluate_by_order<Quotient>),
  };
}

}  // namespace plimsoll::ops
