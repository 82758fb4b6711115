// The matrix product of the last two axes; the axes before them broadcast.
//
//   y[b,i,j] = sum over k of a[b,i,k] * b[b,k,j]        a and b may each lie turned (trans_a,
//   trans_b)
//
// The gradient is two more products with the flags turned, so no transposed copy is ever made, and
// each reads only the other operand. Cost: 2*M*N*K operations for every matrix of the batch.
#pragma once

#include "plimsoll/ops/builder.h"

namespace plimsoll::ops {

struct MatmulOptions {
  bool trans_a = false;
  bool trans_b = false;
};

Var matmul(Var a, Var b, const MatmulOptions& options = {});

}  // namespace plimsoll::ops
