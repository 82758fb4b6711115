// Comparisons, logic on bools, and the choice between two values.
//
// Comparisons and logic give bools; nothing flows back through them. `where` is the one place where
// a bool decides about a number: its gradient is `where` again and reads only the condition.
#pragma once

#include "plimsoll/ops/operator_function.h"

namespace plimsoll::ops {

PLIMSOLL_OPERATOR_OF_TWO(equal)
PLIMSOLL_OPERATOR_OF_TWO(less)
PLIMSOLL_OPERATOR_OF_TWO(less_equal)
PLIMSOLL_OPERATOR_OF_TWO(greater)
PLIMSOLL_OPERATOR_OF_TWO(greater_equal)

PLIMSOLL_OPERATOR_OF_TWO(logical_and)
PLIMSOLL_OPERATOR_OF_TWO(logical_or)
PLIMSOLL_OPERATOR_OF_TWO(logical_xor)
PLIMSOLL_OPERATOR_OF_ONE(logical_not)

// a where the condition holds, b elsewhere; all three broadcast.
inline Var where(Var condition, Var a, Var b) {
  return condition.builder().call1("where", {condition, a, b});
}

}  // namespace plimsoll::ops
