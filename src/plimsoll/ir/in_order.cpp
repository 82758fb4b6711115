#include "plimsoll/ir/in_order.h"

#include <utility>
#include <vector>

namespace plimsoll::ir {

Graph in_order(Graph graph, std::span<const std::size_t> order) {
  std::vector<Node> nodes;
  nodes.reserve(order.size());
  for (const std::size_t from : order) {
    for (const ValueId output : graph.nodes[from].outputs)
      graph.value(output).producer = NodeId(nodes.size());
    nodes.push_back(std::move(graph.nodes[from]));
  }
  graph.nodes = std::move(nodes);
  return graph;
}

}  // namespace plimsoll::ir
