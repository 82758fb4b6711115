// softmax and log_softmax along one axis. Both gradients read only the result, so the input dies at
// once and the result may lie over it.
//
//   softmax_grad      dx = y * (dy - sum(dy * y))
//   log_softmax_grad  dx = dy - exp(y) * sum(dy)
#pragma once

#include "plimsoll/ops/builder.h"

namespace plimsoll::ops {

Var softmax(Var x, std::int64_t axis = -1);
Var log_softmax(Var x, std::int64_t axis = -1);

}  // namespace plimsoll::ops
