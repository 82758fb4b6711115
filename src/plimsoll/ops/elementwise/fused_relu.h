// Operators that end with a ReLU when their attribute activation is "relu": batch norm and
// convolution.
#pragma once

#include "plimsoll/ops/op_definition.h"

namespace plimsoll::ops {

inline AttributeSpec activation_attribute() {
  return attribute::choice("activation", {"", "relu"});
}

// False for the operators without it.
inline bool has_relu(const AttributeReader& attributes) {
  return attributes.declares("activation") && attributes.text("activation") == "relu";
}

}  // namespace plimsoll::ops
