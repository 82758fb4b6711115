// Operators that end with a ReLU when their attribute activation is "relu": batch norm and
// convolution.
#pragma once

#include "plimsoll/ops/op_definition.h"

namespace plimsoll::ops {

inline bool has_relu(const ir::Attributes& attributes) {
  return attributes.text("activation", "") == "relu";
}

// Nothing but "" and "relu".
Status expect_activation(const Call& call);

}  // namespace plimsoll::ops
