// Puts a ReLU into the batch norm, the sum or (for inference) the convolution in front of it;
// simplify.h says why.
#pragma once

#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

// The fused-away nodes stay behind unread; without_dead_nodes takes them.
ir::Graph fuse_activations(const ir::Graph& graph, bool trains);

}  // namespace plimsoll::rewrite
