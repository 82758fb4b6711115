// add, sub, mul, div, pow, maximum, minimum, and comparisons, with numpy's broadcasting.
//
//   add   dy, dy                 needs nothing
//   sub   dy, -dy                needs nothing
//   mul   dy*b, dy*a             needs the other operand, only where that gradient is wanted
//   div   dy/b, -dy*y/b          needs b and the result, not a
// The adjoint of an operand that was broadcast is summed back to its shape (sum_to).
#pragma once

#include "plimsoll/ops/builder.h"

namespace plimsoll::ops {

Var add(Var a, Var b);
Var sub(Var a, Var b);
Var mul(Var a, Var b);
Var div(Var a, Var b);

inline Var operator+(Var a, Var b) { return add(a, b); }
inline Var operator-(Var a, Var b) { return sub(a, b); }
inline Var operator*(Var a, Var b) { return mul(a, b); }
inline Var operator/(Var a, Var b) { return div(a, b); }

// A number of the same dtype as `like`, as a scalar.
Var number(Var like, double value);
inline Var operator+(Var a, double b) { return add(a, number(a, b)); }
inline Var operator-(Var a, double b) { return sub(a, number(a, b)); }
inline Var operator*(Var a, double b) { return mul(a, number(a, b)); }
inline Var operator/(Var a, double b) { return div(a, number(a, b)); }
inline Var operator+(double a, Var b) { return add(number(b, a), b); }
inline Var operator-(double a, Var b) { return sub(number(b, a), b); }
inline Var operator*(double a, Var b) { return mul(number(b, a), b); }
inline Var operator/(double a, Var b) { return div(number(b, a), b); }

// Sums an adjoint back to the shape its operand had before broadcasting.
Var sum_to(Var adjoint, const ir::Shape& shape);

}  // namespace plimsoll::ops
