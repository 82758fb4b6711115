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

#include "plimsoll/ops/builder.h"

namespace plimsoll::ops {

Var neg(Var x);
Var abs(Var x);
Var sign(Var x);
Var floor(Var x);
Var ceil(Var x);
Var round(Var x);
Var reciprocal(Var x);
Var sqrt(Var x);
Var rsqrt(Var x);
Var exp(Var x);
Var log(Var x);
Var sin(Var x);
Var cos(Var x);
Var tan(Var x);
Var asin(Var x);
Var acos(Var x);
Var atan(Var x);
Var sinh(Var x);
Var cosh(Var x);
Var tanh(Var x);
Var asinh(Var x);
Var acosh(Var x);
Var atanh(Var x);
Var erf(Var x);
Var sigmoid(Var x);
// ln(1 + e^x)
Var softplus(Var x);
// x / (1 + |x|)
Var softsign(Var x);
Var identity(Var x);
Var is_nan(Var x);
Var is_inf(Var x);

inline Var operator-(Var x) {
  return neg(x);
}
inline Var square(Var x) {
  return x.builder().call1("mul", {x, x});
}

}  // namespace plimsoll::ops
