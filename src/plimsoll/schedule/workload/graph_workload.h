// From a graph of operators to the workload that budget fitting and planning see.
//
// A workload knows values as bytes. So here operators become tasks and tensors become values, with
// two differences: an operator that only looks at bytes (reshape, a contiguous slice, split along
// the outer axis) becomes no task, its results are *places* inside the value they look at; and what
// the definitions and kernels allow in place becomes an offer (for updates: a demand) on the
// workload's value.
//
//   graph      x ─reshape─▶ r ─relu─▶ y        workload   x ─relu─▶ y   (y offered over x)
//   places     x: x+0, r: x+0, y: y+0
//
// Sizes are padded to the alignment, because that is what the arena pays. A view whose offset is
// not aligned stays a task that copies.
//
// With `join`, a concat whose parts are runs of bytes is no task either: its inputs are made side
// by side, in the memory of the result (joined_parts.h). To the workload that is one value written
// over by each producer:
//
//   graph      a = f(..)   b = g(..)   y = concat(a, b)
//   workload   f ▶ y₁   g reads y₁ ▶ y₂ in its place
//   places     a: y₂+0, b: y₂+|a|, y: y₂+0; all of the size of y
//
// Nothing of it can be recomputed, and all of y has its memory from the first part on: that is less
// than parts and result together, but not always less at the worst moment. So `join` is a
// candidate, not a rule.
#pragma once

#include <functional>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/ops/kernel_facts.h"
#include "plimsoll/schedule/workload/tensor_alignment.h"
#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::schedule {

struct GraphWorkloadOptions {
  ops::KernelTable kernels;
  // Seconds one node takes; absent: every node takes 1.
  std::function<double(const ir::Graph&, const ir::Node&)> seconds;
  CodecRates codecs;               // rates of 0: no encodings are offered
  std::vector<std::string> lossy;  // the lossy forms that may be offered too (graph_encodings.h)
  bool views = true;
  bool in_place = true;                // false: only what is demanded
  bool join = false;                   // concats along the outer axis copy nothing
  std::vector<ValueId> pinned;         // graph values that must be there after the last step
  Bytes alignment = kTensorAlignment;  // of every tensor: what the device's kernels want
};

// Where a value of the graph lies.
struct Place {
  ValueId value;  // of the workload
  Bytes offset;
  bool operator==(const Place&) const = default;
};

struct GraphWorkload {
  Workload workload;
  std::vector<NodeId> node_of_task;
  std::vector<Place> place;          // by graph value
  std::vector<ValueId> graph_value;  // by workload value: the graph value that owns the bytes
  // by workload value: the first that its memory held a part of; or itself
  std::vector<ValueId> lead;
  int joined = 0;  // concats that became no task
  Bytes alignment = kTensorAlignment;
};

Result<GraphWorkload> make_graph_workload(const ir::Graph& graph,
                                          const GraphWorkloadOptions& options);

}  // namespace plimsoll::schedule
