// A graph for every size: the same values and nodes, with extents and counts that depend on
// symbols.
//
//   %0 input "x" fp32[batch,784]                      batch is chosen later: bind_sizes(graph,
//                                                     {{"batch", 17}})
//   %2 activation "fc/linear" fp32[batch,512] = ...
//
// It is found rather than declared. A model is built at three neighbouring sizes per symbol; where
// the graphs are the same but for whole numbers (extents of values, integer attributes), each
// number that changes gets the polynomial through its samples. So any builder, importer, autodiff
// pass or rewrite may stand between the sizes and the graph, none knows of symbols, and a graph
// whose nodes differ with the size (an unrolled recurrence over seq) is refused by name.
//
// Numbers are counted through the graph in one order, extents of all values first, then integer
// attributes of all nodes; `varying` names them by that count.
//
// Invariants: `graph` is the graph at `sizes`; bind_sizes(g, g.sizes) == g.graph. Cost: linear in
// the graph, times 3^symbols to find and once to bind. bind_sizes verifies extents and structure
// (ir::verify); whether the operators agree with the shapes is for ops::verify to say, and whoever
// binds should ask it.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/ir/polynomial.h"

namespace plimsoll::ir {

struct SymbolicGraph {
  Graph graph;
  std::vector<SymbolSize> sizes;
  std::vector<std::pair<std::size_t, Polynomial>> varying;  // sorted by number
};

// `samples` at sizes, sizes+1 and sizes+2 of every symbol, the last symbol running fastest.
Result<SymbolicGraph> generalize(std::vector<SymbolSize> sizes, std::vector<Graph> samples);

Result<Graph> bind_sizes(const SymbolicGraph& symbolic, std::span<const SymbolSize> sizes);

// The text form with symbols (text.h): parse_text reads it at any size.
std::string to_text(const SymbolicGraph& symbolic);

}  // namespace plimsoll::ir
