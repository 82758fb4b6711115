// A graph with its nodes in another order.
#pragma once

#include <cstddef>
#include <span>

#include "plimsoll/ir/graph.h"

namespace plimsoll::ir {

// `order` names each node once, as its index now; values keep their ids.
Graph in_order(Graph graph, std::span<const std::size_t> order);

}  // namespace plimsoll::ir
