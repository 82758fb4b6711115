// Functions of one number, element by element.
//
// A gradient reads the result where it can, because the result is what the next operator keeps
// anyway, and then x may be overwritten:
//   reads nothing   neg, identity
//   reads y         exp, sqrt, rsqrt, reciprocal, tan, tanh, sigmoid
//   reads x         abs, log, sin, cos, asin, acos, atan, sinh, cosh, asinh, acosh, atanh, erf,
//                   softplus, softsign
//   no gradient     sign, floor, ceil, round (zero almost everywhere), is_nan, is_inf
// `neg`, `abs`, `sign` and `identity` take integers too; `round` goes to even at a half, as IEEE
// and ONNX do. `identity` is a view: its result lies in its input.
#pragma once

#include "plimsoll/ops/operator_function.h"

namespace plimsoll::ops {

PLIMSOLL_OPERATOR_OF_ONE(neg)
PLIMSOLL_OPERATOR_OF_ONE(abs)
PLIMSOLL_OPERATOR_OF_ONE(sign)
PLIMSOLL_OPERATOR_OF_ONE(floor)
PLIMSOLL_OPERATOR_OF_ONE(ceil)
PLIMSOLL_OPERATOR_OF_ONE(round)
PLIMSOLL_OPERATOR_OF_ONE(reciprocal)
PLIMSOLL_OPERATOR_OF_ONE(sqrt)
PLIMSOLL_OPERATOR_OF_ONE(rsqrt)
PLIMSOLL_OPERATOR_OF_ONE(exp)
PLIMSOLL_OPERATOR_OF_ONE(log)
PLIMSOLL_OPERATOR_OF_ONE(sin)
PLIMSOLL_OPERATOR_OF_ONE(cos)
PLIMSOLL_OPERATOR_OF_ONE(tan)
PLIMSOLL_OPERATOR_OF_ONE(asin)
PLIMSOLL_OPERATOR_OF_ONE(acos)
PLIMSOLL_OPERATOR_OF_ONE(atan)
PLIMSOLL_OPERATOR_OF_ONE(sinh)
PLIMSOLL_OPERATOR_OF_ONE(cosh)
PLIMSOLL_OPERATOR_OF_ONE(tanh)
PLIMSOLL_OPERATOR_OF_ONE(asinh)
PLIMSOLL_OPERATOR_OF_ONE(acosh)
PLIMSOLL_OPERATOR_OF_ONE(atanh)
PLIMSOLL_OPERATOR_OF_ONE(erf)
PLIMSOLL_OPERATOR_OF_ONE(sigmoid)
// ln(1 + e^x)
PLIMSOLL_OPERATOR_OF_ONE(softplus)
// x / (1 + |x|)
PLIMSOLL_OPERATOR_OF_ONE(softsign)
PLIMSOLL_OPERATOR_OF_ONE(identity)
PLIMSOLL_OPERATOR_OF_ONE(is_nan)
PLIMSOLL_OPERATOR_OF_ONE(is_inf)

inline Var operator-(Var x) {
  return neg(x);
}
inline Var square(Var x) {
  return x.builder().call1("mul", {x, x});
}

}  // namespace plimsoll::ops
