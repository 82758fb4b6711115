#include "plimsoll/rewrite/hoist_reorders.h"

#include <algorithm>

#include "plimsoll/rewrite/graph_editor.h"

namespace plimsoll::rewrite {
namespace {

// The layout all readers want, or nothing when they differ or one is no reorder.
const ir::Layout* wanted_layout(const ir::Graph& graph, const std::vector<NodeId>& readers) {
  const ir::Layout* wanted = nullptr;
  for (const NodeId reader : readers) {
    const ir::Node& node = graph.node(reader);
    if (node.op != "reorder") return nullptr;
    const ir::Layout& layout = graph.value(node.outputs.front()).type.layout;
    if (wanted != nullptr && !(layout == *wanted)) return nullptr;
    wanted = &layout;
  }
  return wanted;
}

}  // namespace

ir::Graph hoist_reorders(ir::Graph graph) {
  std::vector<bool> changes(graph.values.size(), false);
  for (const ir::Update& update : graph.updates) changes[update.source.index()] = true;
  const auto readers = ir::readers(graph);
  std::vector<ValueId> instead(graph.values.size());
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (graph.values[v].kind != ir::ValueKind::kWeight || changes[v] || readers[v].empty())
      continue;
    const ir::Layout* layout = wanted_layout(graph, readers[v]);
    if (layout == nullptr) continue;
    graph.values[v].type.layout = *layout;
    for (const NodeId reader : readers[v])
      instead[graph.node(reader).outputs.front().index()] = ValueId(v);
  }
  const auto follow = [&](ValueId& id) {
    if (id.valid() && instead[id.index()].valid()) id = instead[id.index()];
  };
  for (ir::Node& node : graph.nodes) std::for_each(node.inputs.begin(), node.inputs.end(), follow);
  std::for_each(graph.outputs.begin(), graph.outputs.end(), follow);
  return without_dead_nodes(std::move(graph));
}

}  // namespace plimsoll::rewrite
