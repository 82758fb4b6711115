// Comparisons, logic on bools, and the choice between two values.
//
// Comparisons and logic give bools; nothing flows back through them. `where` is the one place where
// a bool decides about a number: its gradient is `where` again and reads only the condition.
#pragma once

#include "plimsoll/ops/builder.h"

namespace plimsoll::ops {

Var equal(Var a, Var b);
Var less(Var a, Var b);
Var less_equal(Var a, Var b);
Var greater(Var a, Var b);
Var greater_equal(Var a, Var b);

Var logical_and(Var a, Var b);
Var logical_or(Var a, Var b);
Var logical_xor(Var a, Var b);
Var logical_not(Var x);

// a where the condition holds, b elsewhere; all three broadcast.
Var where(Var condition, Var a, Var b);

}  // namespace plimsoll::ops
