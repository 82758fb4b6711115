// Arithmetic on two operands with numpy's broadcasting.
//
//   add      dy, dy                    needs nothing
//   sub      dy, -dy                   needs nothing
//   mul      dy*b, dy*a                needs the other operand, only where that gradient is wanted
//   div      dy/b, -dy*y/b             needs b and the result, not a
//   pow      dy*b*a^(b-1), dy*y*ln a   needs a and b; y for the exponent's gradient
//   maximum  dy where a >= b, else to b (minimum the other way): a tie goes to a
//   mod      dy, -dy*floor(a/b)        needs a and b, for b's gradient only
// The adjoint of an operand that was broadcast is summed back to its shape (sum_to).
//
// Integers wrap; divided by zero (div, mod) they give zero; a negative power of one is zero unless
// the base is 1 or -1.
#pragma once

#include "plimsoll/ops/operator_function.h"

namespace plimsoll::ops {

PLIMSOLL_OPERATOR_OF_TWO(add)
PLIMSOLL_OPERATOR_OF_TWO(sub)
PLIMSOLL_OPERATOR_OF_TWO(mul)
PLIMSOLL_OPERATOR_OF_TWO(div)
PLIMSOLL_OPERATOR_OF_TWO(pow)
PLIMSOLL_OPERATOR_OF_TWO(maximum)
PLIMSOLL_OPERATOR_OF_TWO(minimum)
// The sign of b, as Python's %; with `fmod` the sign of a, as C's.
Var mod(Var a, Var b, bool fmod = false);

inline Var operator+(Var a, Var b) {
  return add(a, b);
}
inline Var operator-(Var a, Var b) {
  return sub(a, b);
}
inline Var operator*(Var a, Var b) {
  return mul(a, b);
}
inline Var operator/(Var a, Var b) {
  return div(a, b);
}

// A number of the same dtype as `like`, as a scalar.
inline Var number(Var like, double value) {
  return like.builder().fill({like.dtype(), {}}, value);
}
inline Var operator+(Var a, double b) {
  return add(a, number(a, b));
}
inline Var operator-(Var a, double b) {
  return sub(a, number(a, b));
}
inline Var operator*(Var a, double b) {
  return mul(a, number(a, b));
}
inline Var operator/(Var a, double b) {
  return div(a, number(a, b));
}
inline Var operator+(double a, Var b) {
  return add(number(b, a), b);
}
inline Var operator-(double a, Var b) {
  return sub(number(b, a), b);
}
inline Var operator*(double a, Var b) {
  return mul(number(b, a), b);
}
inline Var operator/(double a, Var b) {
  return div(number(b, a), b);
}

}  // namespace plimsoll::ops
