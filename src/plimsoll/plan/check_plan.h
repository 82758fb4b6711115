// The verifier of plans: does this plan compute what its graph says, in the memory it says?
//
// It calls no function of the planner, the scheduler or the packer. It replays the steps over a map
// of every arena that knows, for each byte, *which value's which byte* lies there and who wrote and
// read it last:
//  1. a read must find exactly the bytes of the value that the node wants (so lifetimes cut short,
//     offsets moved, steps swapped and stale weights all show up as the wrong content);
//  2. a write may overlap what the same step reads only where the operator allows that result over
//     that input and both are the same bytes; results and scratch do not overlap each other;
//  3. every slot lies inside its buffer, every buffer inside its arena, at the alignment;
//  4. a step's conflicts (write after read, read after write) with other streams are ordered by
//     waits;
//  5. every node runs, an update exactly once, and at the end results and next versions lie where
//     the plan says, each state's next version where the state lay;
//  6. buffers that should be contiguous are;
//  7. the arena is not above its budget, and what the plan says about itself (lifetimes, uses,
//     heights, the proof, the predicted time) is what follows from its steps: check_claims.h.
// A node that no step runs must be a view, or a concat whose parts were made side by side; which
// bytes those are, check_views.h tells from the shapes.
//
// Trusted are the graph, which ops::verify() finds right, and three facts of an operator's
// definition that no shape tells: over which input a result may be written, whether it must be, and
// whether the operator may run twice; and of a codec, what kind of elements it stores.
//
// Cost: n log n in the slots. All problems are collected (up to a hundred), not only the first.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/plan/plan.h"

namespace plimsoll::plan {

struct PlanCheck {
  std::vector<std::string> problems;
  Bytes peak_bytes;  // highest byte of device memory that any step touches
  bool ok() const { return problems.empty(); }
};

PlanCheck check_plan(const Plan& plan);

}  // namespace plimsoll::plan
