#include "plimsoll/report/graph_view.h"

#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace plimsoll::report {
namespace {

class GraphReader {
 public:
  GraphReader(const plan::Plan& plan, Timeline& timeline)
      : plan_(plan), graph_(plan.graph), timeline_(timeline) {}

  GraphView read() {
    made_by_.assign(graph_.values.size(), -1);
    find_first_readers();
    add_inputs();
    add_lone_weights();
    add_operators();
    add_edges();
    for (const Allocation& allocation : timeline_.allocations)
      out_.node_of_allocation.push_back(owner_of(allocation));
    return std::move(out_);
  }

 private:
  TextId intern(std::string_view text) { return timeline_.texts.intern(text); }
  TextId type_of(ValueId value) { return intern(ir::to_string(graph_.value(value).type)); }

  void add_source(std::size_t value, std::string_view op, std::string_view layer) {
    made_by_[value] = static_cast<std::int32_t>(out_.nodes.size());
    out_.nodes.push_back({intern(op), intern(layer), type_of(ValueId(value)), ir::Phase::kForward});
  }

  void add_inputs() {
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      const ir::Value& value = graph_.values[v];
      if (value.kind != ir::ValueKind::kInput) continue;
      const bool says_so = value.name.starts_with("input");
      add_source(v, says_so ? value.name : "input " + value.name,
                 layer_of_source(value.name, Kind::kInputs));
    }
  }

  void add_lone_weights() {
    std::unordered_set<std::string_view> layers;
    for (const ir::Node& node : graph_.nodes) {
      if (node.phase == ir::Phase::kForward) layers.insert(node.layer);
    }
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      const ir::Value& value = graph_.values[v];
      const bool weight = value.kind == ir::ValueKind::kWeight;  // counters would reach everywhere
      const std::string_view layer = layer_of_source(value.name, Kind::kWeights);
      if (!weight || layer.empty() || !first_reader_[v].valid() || layers.contains(layer)) continue;
      add_source(v, value.name.substr(layer.size() + 1), layer);
    }
  }

  void add_operators() {
    first_node_ = static_cast<std::int32_t>(out_.nodes.size());
    for (const ir::Node& node : graph_.nodes) {
      const TextId type = node.outputs.empty() ? TextId{0} : type_of(node.outputs.front());
      out_.nodes.push_back({intern(node.op), intern(node.layer), type, node.phase});
    }
    for (std::size_t v = 0; v < graph_.values.size(); ++v) {
      const NodeId producer = graph_.values[v].producer;
      if (producer.valid()) made_by_[v] = index_of(producer);
    }
  }

  std::int32_t index_of(NodeId node) const {
    return first_node_ + static_cast<std::int32_t>(node.index());
  }

  bool is_forward(std::int32_t node) const {
    return node >= 0 && out_.nodes[static_cast<std::size_t>(node)].phase == ir::Phase::kForward;
  }

  void find_first_readers() {
    first_reader_.assign(graph_.values.size(), NodeId());
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (graph_.nodes[n].phase != ir::Phase::kForward) continue;
      for (const ValueId input : graph_.nodes[n].inputs) {
        if (!input.valid() || first_reader_[input.index()].valid()) continue;
        first_reader_[input.index()] = NodeId(n);
        const ir::Value& value = graph_.value(input);
        if (value.kind == ir::ValueKind::kWeight) weights_.emplace(value.name, input);
      }
    }
  }

  void add_edges() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const ir::Node& node = graph_.nodes[n];
      if (node.phase != ir::Phase::kForward) continue;
      for (const ValueId input : node.inputs) {
        if (!input.valid() || !is_forward(made_by_[input.index()])) continue;
        const ir::Value& value = graph_.value(input);
        out_.edges.push_back({made_by_[input.index()], index_of(NodeId(n)), intern(value.name),
                              type_of(input), ir::bytes_of(value.type)});
      }
    }
  }

  std::int32_t owner_of(const Allocation& allocation) const {
    const std::int32_t node = any_owner_of(allocation);
    if (!is_forward(node)) return -1;
    const TextId layer = out_.nodes[static_cast<std::size_t>(node)].layer;
    return allocation.layer == TextId{0} || layer == allocation.layer ? node : -1;
  }

  std::int32_t any_owner_of(const Allocation& allocation) const {
    if (!allocation.buffer.valid()) return -1;
    const ValueId value = plan_.buffer(allocation.buffer).value;
    if (value.valid()) return owner_of_value(value);
    const auto step = static_cast<std::size_t>(allocation.life.begin.value);
    const bool computes = step < plan_.steps.size() && plan_.steps[step].node.valid();
    return computes ? index_of(plan_.steps[step].node) : -1;
  }

  std::int32_t owner_of_value(ValueId value) const {
    if (made_by_[value.index()] >= 0) return made_by_[value.index()];
    if (first_reader_[value.index()].valid()) return index_of(first_reader_[value.index()]);
    // "conv1.weight.m" goes where "conv1.weight" goes.
    const std::string_view name = graph_.value(value).name;
    const auto dot = name.rfind('.');
    if (dot == std::string_view::npos) return -1;
    const auto weight = weights_.find(name.substr(0, dot));
    return weight == weights_.end() || weight->second == value ? -1
                                                               : owner_of_value(weight->second);
  }

  const plan::Plan& plan_;
  const ir::Graph& graph_;
  Timeline& timeline_;
  GraphView out_;
  std::int32_t first_node_ = 0;
  std::vector<std::int32_t> made_by_;  // by value; -1: a source that has no node
  std::vector<NodeId> first_reader_;   // by value, of the forward pass
  std::unordered_map<std::string_view, ValueId> weights_;  // that the forward pass reads
};

}  // namespace

GraphView graph_view_of(const plan::Plan& plan, Timeline& timeline) {
  return GraphReader(plan, timeline).read();
}

}  // namespace plimsoll::report
