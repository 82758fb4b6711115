// Reference functions of one real number that more than one family needs.
#pragma once

#include <cmath>

#include "plimsoll/ops/op_definition.h"

namespace plimsoll::ops {

// Neither branch overflows.
inline double sigmoid_of(double x) {
  return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x));
}
inline double softplus_of(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}

// y = f(x) for a real x and y.
template <typename Function>
void evaluate_real(const Evaluation& e, Function f) {
  const Array& x = e.in(0);
  for (std::size_t i = 0; i < x.reals.size(); ++i) e.out().reals[i] = f(x.reals[i]);
}

}  // namespace plimsoll::ops
