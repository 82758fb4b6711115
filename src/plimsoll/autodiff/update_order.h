// Puts updates of state where they may stand: behind every reader of the old version.
//
// A forward graph ends with the updates of its own state (running statistics, the dropout counter).
// When the backward part is appended, it may read that state again: the gradient of dropout needs
// the counter that made the mask. So such an update moves to right behind the last reader of what
// it overwrites.
#pragma once

#include "plimsoll/ir/graph.h"

namespace plimsoll::autodiff {

// The same graph with nodes in another order; values keep their ids.
ir::Graph updates_behind_readers(ir::Graph graph);

}  // namespace plimsoll::autodiff
