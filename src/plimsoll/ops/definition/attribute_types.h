// One name, one type: "axis" is an integer and "pads" a list of integers whichever operator they
// stand on. So the types of attributes need no list on every definition, and a file that writes
// axis="1" or axsi=1 is refused before any type rule reads a default in its place.
//
//   check_attributes({{"axis", "1"}});   // axis: is a text, must be an integer
//   check_attributes({{"axsi", 1}});     // no operator has an attribute axsi; the nearest is axis
//
// Two names have both number types: `k` counts in top_k and is real in lrn, `bias` likewise; there
// the operator's type rule says which.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/ir/attributes.h"

namespace plimsoll::ops {

Status check_attributes(const ir::Attributes& attributes);

}  // namespace plimsoll::ops
