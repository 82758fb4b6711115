// Is a gradient right? Finite differences in fp64, through the reference evaluations.
//
// An example call becomes a scalar: L = sum over outputs of sum(y_j * r_j) with fixed random r_j
// (their adjoint is what the gradient rule sees as dy). Checks, each with a message that names
// operator, input, element and both numbers:
//
//   first order     dL/dx from differentiate() against (L(x+h) - L(x-h)) / 2h, every element
//   second order    G = sum_i sum(dL/dx_i * s_i), differentiated again with respect to x and r,
//                   against
//                   differences of G. For smooth examples.
//   used twice      L from two calls on the same inputs; and op(x, x) where both may be one value
//   poisoning       the gradient rule alone, with every input and output that gradient_needs does
//                   not
//                   list filled with NaN: the same bits come out
//   decomposition   a fused operator and its decomposition give the same numbers
//
// An example with an empty input runs all of it on nothing, which shows that nothing divides by its
// size.
//
// Cost: two evaluations an element and check. Keep examples small.
#pragma once

#include "plimsoll/autodiff/testing/operator_examples.h"
#include "plimsoll/base/result.h"

namespace plimsoll::autodiff {

struct GradientCheckOptions {
  double step = 1e-5;
  double tolerance = 2e-6;  // relative to max(1, |a|, |b|)
};

Status check_first_order(const OperatorExample& example, const GradientCheckOptions& options = {});
Status check_second_order(const OperatorExample& example, const GradientCheckOptions& options = {});
Status check_used_twice(const OperatorExample& example, const GradientCheckOptions& options = {});
Status check_poisoned(const OperatorExample& example);
Status check_decomposition(const OperatorExample& example, double tolerance = 1e-12);

// All that apply to the example.
Status check_gradient(const OperatorExample& example, const GradientCheckOptions& options = {});

}  // namespace plimsoll::autodiff
