// The loops behind reference evaluations of functions of one number.
#pragma once

#include "plimsoll/ops/elementwise/activation_formulas.h"
#include "plimsoll/ops/op_definition.h"

namespace plimsoll::ops {

// y = f(x) for a real x and y.
template <typename Function>
void evaluate_real(const Evaluation& e, Function f) {
  const Array& x = e.in(0);
  for (std::size_t i = 0; i < x.reals.size(); ++i) e.out().reals[i] = f(x.reals[i]);
}

template <template <typename> class Formula>
void evaluate_value(const Evaluation& e) {
  const auto formula = formula_for<Formula<ReferenceMath>>(e.attributes);
  evaluate_real(e, [&](double x) { return formula.value(x); });
}

}  // namespace plimsoll::ops
