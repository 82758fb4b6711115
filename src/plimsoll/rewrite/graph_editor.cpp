#include "plimsoll/rewrite/graph_editor.h"

#include <algorithm>
#include <numeric>

#include "plimsoll/ir/in_order.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::rewrite {

GraphEditor::GraphEditor(ir::Graph graph)
    : graph_(std::move(graph)),
      original_(graph_.nodes.size()),
      place_(original_),
      readers_(ir::readers(graph_)),
      output_(graph_.values.size(), false) {
  std::iota(place_.begin(), place_.end(), std::size_t{0});
  for (const ValueId output : graph_.outputs) output_[output.index()] = true;
  for (const ir::Update& update : graph_.updates) output_[update.next.index()] = true;
}

const ir::Node* GraphEditor::producer(ValueId value) const {
  if (!value.valid() || !graph_.value(value).producer.valid()) return nullptr;
  return &graph_.node(graph_.value(value).producer);
}

bool GraphEditor::has_one_reader(ValueId value) const {
  return readers_[value.index()].size() == 1 && !output_[value.index()];
}

void GraphEditor::read(NodeId node, ValueId value) {
  if (!value.valid()) return;
  auto& list = readers_[value.index()];
  if (std::find(list.begin(), list.end(), node) == list.end()) list.push_back(node);
}

Result<std::vector<ValueId>> GraphEditor::insert(NodeId at, std::string_view op,
                                                 std::vector<ValueId> inputs,
                                                 ir::Attributes attributes, NodeId like) {
  ir::Node node;
  node.op = op;
  node.layer = graph_.node(like.valid() ? like : at).layer;
  node.phase = graph_.node(like.valid() ? like : at).phase;
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  PLIMSOLL_TRY(const auto types, ops::infer(graph_, node));
  const auto kind =
      node.phase == ir::Phase::kForward ? ir::ValueKind::kActivation : ir::ValueKind::kGradient;
  const NodeId id = graph_.add_node(std::move(node), types, kind);
  place_.push_back(place_[at.index()]);
  readers_.resize(graph_.values.size());
  output_.resize(graph_.values.size(), false);
  for (const ValueId input : graph_.node(id).inputs) read(id, input);
  return graph_.node(id).outputs;
}

ValueId GraphEditor::insert_constant(std::string_view name, const ir::TensorType& type,
                                     std::vector<std::byte> data) {
  const ValueId id = graph_.add_source(fmt::format("{}#{}", name, graph_.values.size()),
                                       ir::ValueKind::kConstant, type);
  graph_.constants.push_back({id, std::move(data)});
  readers_.resize(graph_.values.size());
  output_.resize(graph_.values.size(), false);
  return id;
}

ValueId GraphEditor::insert_weight(std::string name, const ir::TensorType& type) {
  const ValueId id = graph_.add_source(std::move(name), ir::ValueKind::kWeight, type,
                                       {ir::Init::Kind::kFile, 0, 0});
  readers_.resize(graph_.values.size());
  output_.resize(graph_.values.size(), false);
  return id;
}

void GraphEditor::replace(ValueId old, ValueId by) {
  for (const NodeId reader : readers_[old.index()]) {
    auto& inputs = graph_.node(reader).inputs;
    std::replace(inputs.begin(), inputs.end(), old, by);
    read(reader, by);
  }
  readers_[old.index()].clear();
  if (!output_[old.index()]) return;
  std::replace(graph_.outputs.begin(), graph_.outputs.end(), old, by);
  for (ir::Update& update : graph_.updates) {
    if (update.next == old) update.next = by;
  }
  graph_.value(by).name = graph_.value(old).name;
  output_[by.index()] = true;
  output_[old.index()] = false;
}

ir::Graph GraphEditor::finish() {
  std::vector<std::size_t> order(graph_.nodes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // What was inserted at a node stands before it, in the order of insertion.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (place_[a] != place_[b]) return place_[a] < place_[b];
    return (a >= original_) > (b >= original_);
  });
  return without_dead_nodes(ir::in_order(std::move(graph_), order));
}

ir::Graph without_dead_nodes(ir::Graph graph) {
  std::vector<bool> live(graph.values.size(), false);
  for (std::size_t v = 0; v < graph.values.size(); ++v)
    live[v] = graph.values[v].kind == ir::ValueKind::kInput;
  for (const ValueId output : graph.outputs) live[output.index()] = true;
  for (const ir::Update& update : graph.updates)
    live[update.source.index()] = live[update.next.index()] = true;
  std::vector<bool> kept(graph.nodes.size(), false);
  for (std::size_t n = graph.nodes.size(); n-- > 0;) {
    const ir::Node& node = graph.nodes[n];
    kept[n] = std::any_of(node.outputs.begin(), node.outputs.end(),
                          [&](ValueId v) { return live[v.index()]; });
    if (!kept[n]) continue;
    for (const ValueId output : node.outputs) live[output.index()] = true;
    for (const ValueId input : node.inputs) {
      if (input.valid()) live[input.index()] = true;
    }
  }
  std::vector<ValueId> renamed(graph.values.size());
  std::vector<ir::Value> values;
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (!live[v]) continue;
    renamed[v] = ValueId(values.size());
    values.push_back(std::move(graph.values[v]));
  }
  graph.values = std::move(values);
  const auto rename = [&](ValueId& id) {
    if (id.valid()) id = renamed[id.index()];
  };
  std::vector<ir::Node> nodes;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    if (!kept[n]) continue;
    ir::Node& node = graph.nodes[n];
    for (ValueId& input : node.inputs) rename(input);
    for (ValueId& output : node.outputs) {
      rename(output);
      graph.value(output).producer = NodeId(nodes.size());
    }
    nodes.push_back(std::move(node));
  }
  graph.nodes = std::move(nodes);
  for (ValueId& output : graph.outputs) rename(output);
  for (ir::Update& update : graph.updates) {
    rename(update.source);
    rename(update.next);
  }
  std::vector<ir::Constant> constants;
  for (ir::Constant& constant : graph.constants) {
    if (!live[constant.value.index()]) continue;
    rename(constant.value);
    constants.push_back(std::move(constant));
  }
  graph.constants = std::move(constants);
  return graph;
}

}  // namespace plimsoll::rewrite
