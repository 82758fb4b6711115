// Stores weights in the layout their only reader wants.
//
// Choosing layouts puts a `reorder` between a weight and a convolution that wants its weights
// blocked. While a weight is trained that reorder must run in every step: the update works on the
// plain form. A weight that no update changes can lie blocked from the start, and the reorder, with
// its copy of the weight, is gone.
#pragma once

#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

// Only for weights whose every reader is a reorder to one and the same layout.
ir::Graph hoist_reorders(ir::Graph graph);

}  // namespace plimsoll::rewrite
