// Operators that are too large, computed in parts: a graph in which no tensor that could be split
// is larger than a limit, as far as its rows allow.
//
// The largest step decides the smallest memory. For a language model it is the loss: logits for
// every position at once, and their gradient, although every row of them is read only beside
// itself.
//
//   h ─linear─▶ logits ─cross_entropy─▶ loss          for every part of the rows:
//                 └────cross_entropy_grad─▶ dlogits      hᵢ = slice(h)       no bytes of its own
//                            ├─linear─▶ dh               logitsᵢ, lossᵢ, dlogitsᵢ
//                            └─linear_grad_weight─▶ dw   dhᵢ;  dw over dw: dw + hᵢᵀ dlogitsᵢ
//                                                     dh = concat(dhᵢ), loss = mean_loss(lossᵢ)
//
// A region is what hangs together by tensors above the limit: their producers and all their
// readers, each of which must have a Split rule (ops/op_definition.h) that cuts the tensor along
// the same rows. Whatever else the region reads is sliced (a view) or taken whole; whatever else
// reads its results gets them joined. Parts are ordinary nodes, so everything behind this
// (planning, checking, running, reporting) needs to know nothing. All parts of a region stand
// together, one part after the other: the backward half of a part runs right behind its forward
// half, and nothing is recomputed.
//
// Bits: those of the whole graph. Parts are whole granules of the rules; losses are summed over
// rows in order; sums go on from what the part before them made.
//
// Not split: a tensor that is an output of the graph or that something without a rule reads, and
// regions that something outside both depends on and feeds.
//
// Cost: linear in the graph for every region.
#pragma once

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"

namespace plimsoll::rewrite {

struct SplitGraph {
  ir::Graph graph;
  std::int64_t operators = 0;  // that are computed in parts
  std::int64_t parts = 0;      // of the operator with most
};

Result<SplitGraph> split_rows(const ir::Graph& graph, Bytes limit);

// The whole step in so many micro-batches, or as much of it as hangs together: everything from the
// first operator with a rule to the sums over the batch, whatever its size. Gradients of weights go
// on from part to part; random numbers are those of the sample's place in the whole batch; losses
// are divided by the labels of all. No operators where something in the middle has no rule: where a
// batch norm trains, for example.
Result<SplitGraph> split_batch(const ir::Graph& graph, std::int64_t parts);

// The graph in ever smaller parts, coarsest first: at most `most` of limits of 1/2, 1/4, 1/8, ...
// of its largest tensor, then micro-batches of 1/2, 1/4 and 1/8. No two neighbours are the same;
// none where nothing can be split.
Result<std::vector<SplitGraph>> split_ladder(const ir::Graph& graph, int most);

}  // namespace plimsoll::rewrite
