// The graph of a plan as the page draws it: operators with their layers, the tensors that flow
// between them, and which operator each allocation belongs to.
//
//   nodes   input x | wte: weight | conv1/conv  conv1/relu  fc/matmul ...
//   edges   x ─▶ conv1/conv ─▶ conv1/relu ─▶ ...               of the forward pass only
//
// Inputs come first, then weights whose layer has no operator of its own (an embedding table that
// its parent reads), then the plan's nodes.
//
// A reader thinks of a model as its forward pass; what the backward pass and the optimizer hold is
// counted to the layers that they serve. So edges are those between forward operators, and an
// allocation belongs to a forward operator (what it makes, its scratch, the weights that it reads
// first, and the moments of those weights) or, as gradients do, only to its layer.
//
// Invariant: an allocation's node, where it has one, is of the allocation's layer, so that sums by
// operator and sums by layer agree; only what has no layer goes to the layer of its first reader.
// Linear in the graph.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/plan/plan.h"
#include "plimsoll/report/timeline.h"

namespace plimsoll::report {

struct GraphNode {
  TextId op{0};
  TextId layer{0};
  TextId type{0};  // of its first output
  ir::Phase phase = ir::Phase::kForward;
};

struct GraphEdge {
  std::int32_t from = 0;  // both are indices into nodes
  std::int32_t to = 0;
  TextId name{0};
  TextId type{0};
  Bytes bytes;
};

struct GraphView {
  std::vector<GraphNode> nodes;
  std::vector<GraphEdge> edges;
  std::vector<std::int32_t> node_of_allocation;  // -1: only of its layer
};

// For the timeline of this plan; new texts are added to it.
GraphView graph_view_of(const plan::Plan& plan, Timeline& timeline);

}  // namespace plimsoll::report
