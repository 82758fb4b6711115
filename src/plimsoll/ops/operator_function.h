// Functions for operators that have inputs and nothing else, named after the operator: exp(x)
// builds a node `exp`. Those with attributes are written out in their family's header.
#pragma once

#include "plimsoll/ops/builder.h"

#define PLIMSOLL_OPERATOR_OF_ONE(op)    \
  inline Var op(Var x) {                \
    return x.builder().call1(#op, {x}); \
  }
#define PLIMSOLL_OPERATOR_OF_TWO(op)       \
  inline Var op(Var a, Var b) {            \
    return a.builder().call1(#op, {a, b}); \
  }
