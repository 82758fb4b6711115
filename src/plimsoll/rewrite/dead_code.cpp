#include "plimsoll/rewrite/dead_code.h"

#include <algorithm>

namespace plimsoll::rewrite {

ir::Graph remove_dead_code(const ir::Graph& graph) {
  std::vector<bool> live(graph.values.size(), false);
  for (const ValueId output : graph.outputs) live[output.index()] = true;
  for (const ir::Update& update : graph.updates) live[update.next.index()] = true;
  std::vector<bool> runs(graph.nodes.size(), false);
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    const ir::Node& node = graph.nodes[n];
    runs[n] = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) { return live[id.index()]; });
    if (!runs[n]) continue;
    for (const ValueId input : node.inputs) {
      if (input.valid()) live[input.index()] = true;
    }
  }

  ir::Graph out;
  out.name = graph.name;
  std::vector<ValueId> moved(graph.values.size());
  std::vector<NodeId> node_moved(graph.nodes.size());
  std::size_t next_node = 0;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (runs[n]) node_moved[n] = NodeId(next_node++);
  }
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const ir::Value& value = graph.values[v];
    if (value.producer.valid() && !runs[value.producer.index()]) continue;
    moved[v] = ValueId(out.values.size());
    out.values.push_back(value);
    if (value.producer.valid()) out.values.back().producer = node_moved[value.producer.index()];
  }
  const auto move = [&](ValueId& id) { id = id.valid() ? moved[id.index()] : id; };
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!runs[n]) continue;
    out.nodes.push_back(graph.nodes[n]);
    std::for_each(out.nodes.back().inputs.begin(), out.nodes.back().inputs.end(), move);
    std::for_each(out.nodes.back().outputs.begin(), out.nodes.back().outputs.end(), move);
  }
  out.outputs = graph.outputs;
  std::for_each(out.outputs.begin(), out.outputs.end(), move);
  out.updates = graph.updates;
  for (ir::Update& update : out.updates) {
    move(update.source);
    move(update.next);
  }
  out.constants = graph.constants;
  for (ir::Constant& constant : out.constants) move(constant.value);
  return out;
}

}  // namespace plimsoll::rewrite
