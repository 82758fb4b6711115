// Optimizer updates in parts, so that the moments of a large weight need not all be there at once.
//
// An update reads a weight, its gradient and its moments: four times the weight's bytes with AdamW.
// Element by element it needs nothing but that element, so each part of the moments becomes a
// source of its own, and a part of the weight is updated while the next part's moments come and the
// last part's go:
//
//   w' m' v' = adamw(w, g, m, v)   becomes   w1 m0' v0' = adamw(w,  g, m0, v0) {first=0}
//                                            w2 m1' v1' = adamw(w1, g, m1, v1) {first=n}
//                                            ...                            all over w
//
// Weight and gradient stay whole: products want them so, and their bits do not change. Checkpoints
// have the whole moments under their names (ops/collective/shard.h), so a run goes on with a plan
// in parts from where one without ended, and the other way round.
//
// Where parts stand. Right behind the gradient they wait for the bus, one after the other, and so
// does everything behind them; but the gradient is gone soonest. At a pace they stand where the bus
// has had the time to bring their moments, in between the rest of the backward pass:
//
//   at once   dw u1 u2 u3 u4 b5 b4 b3 b2 b1       paced   dw u1 b5 b4 u2 b3 b2 u3 b1 u4
//
// Left whole: weights that do not lie row by row or are not fp32, moments that something else
// reads, and what is smaller than a part. Linear in the graph.
#pragma once

#include <functional>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/rewrite/split_rows.h"

namespace plimsoll::rewrite {

struct UpdatePace {
  std::function<double(const ir::Graph&, const ir::Node&)> seconds;  // that a node takes
  double bytes_per_second = 0;                                       // of the bus; 0: at once
};

// Moments in parts of at most so many bytes each (but of 4 KiB at least).
Result<SplitGraph> split_updates(const ir::Graph& graph, Bytes part, const UpdatePace& pace = {});

// The bytes of the largest update: weight, gradient and moments; zero where none can be split.
Bytes largest_update(const ir::Graph& graph);

}  // namespace plimsoll::rewrite
