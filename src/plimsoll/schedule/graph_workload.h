// From a graph of operators to the workload that budget fitting and planning see.
//
// A workload knows values as bytes. So here operators become tasks and tensors become values, with two
// differences: an operator that only looks at bytes (reshape, a contiguous slice, split along the outer
// axis) becomes no task, its results are *places* inside the value they look at; and what the cards and
// kernels allow in place becomes an offer (for updates: a demand) on the workload's value.
//
//   graph      x ─reshape─▶ r ─relu─▶ y        workload   x ─relu─▶ y   (y offered over x)
//   places     x: x+0, r: x+0, y: y+0
//
// Sizes are padded to the alignment, because that is what the arena pays. A view whose offset is not
// aligned stays a task that copies.
#pragma once

#include <functional>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/ir/graph.h"
#include "plimsoll/ops/kernel_facts.h"
#include "plimsoll/schedule/workload.h"

namespace plimsoll::schedule {

inline constexpr Bytes kTensorAlignment{64};

struct GraphWorkloadOptions {
  ops::KernelTable kernels;
  // Seconds one node takes; absent: every node takes 1.
  std::function<double(const ir::Graph&, const ir::Node&)> seconds;
  // Bytes a second at which maps are encoded; 0: no encodings are offered.
  double encode_rate = 0;
  bool views = true;
  bool in_place = true;            // false: only what is demanded
  std::vector<ValueId> pinned;     // graph values that must be there after the last step
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
  std::vector<Place> place;             // by graph value
  std::vector<ValueId> graph_value;     // by workload value: the graph value that owns the bytes
};

Result<GraphWorkload> make_graph_workload(const ir::Graph& graph, const GraphWorkloadOptions& options);

}  // namespace plimsoll::schedule
