// Random graphs for property tests: small, valid, and full of what makes planning go wrong.
//
// A pool of matrices grows node by node; every node takes its operands from the pool, so values
// have none, one or many readers, near and far. In the mix, by intent rather than by chance:
//   views            reshape, slices and splits of the outer axis, views of views
//   in-place chains  relu, tanh, neg, add, slice assignment, one behind the other
//   copies           concat, transpose, slices that are no views
//   several results  split, layer_norm, momentum
//   updates          sgd and momentum, in the middle of the graph, when the weight's readers are
//                    done
// Outputs are one to three values that nodes made, views included.
//
// One seed, one graph, on every machine. Some thirty small nodes: ten thousand graphs a minute.
#pragma once

#include <cstdint>

#include "plimsoll/ir/graph.h"

namespace plimsoll::plan {

ir::Graph random_graph(std::uint64_t seed, int nodes = 30);

}  // namespace plimsoll::plan
