#include "plimsoll/ir/graph.h"

#include <algorithm>
#include <array>

namespace plimsoll::ir {

std::string_view name(ValueKind kind) {
  static constexpr std::array<std::string_view, kValueKindCount> kNames = {
      "input", "weight", "optimizer", "state", "constant", "activation", "gradient"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view name(Phase phase) {
  static constexpr std::array<std::string_view, kPhaseCount> kNames = {"forward", "backward",
                                                                       "update"};
  return kNames[static_cast<std::size_t>(phase)];
}

const std::vector<std::byte>* Graph::data(ValueId id) const {
  // Constants are appended in the order of their values.
  const auto place =
      std::lower_bound(constants.begin(), constants.end(), id,
                       [](const Constant& constant, ValueId key) { return constant.value < key; });
  return place != constants.end() && place->value == id ? &place->data : nullptr;
}

ValueId Graph::add_source(std::string source_name, ValueKind kind, TensorType type, Init init) {
  values.push_back({std::move(source_name), type, kind, {}, 0, init});
  return ValueId(values.size() - 1);
}

NodeId Graph::add_node(Node node, const std::vector<TensorType>& types, ValueKind kind) {
  const NodeId id(nodes.size());
  node.outputs.clear();
  for (std::size_t i = 0; i < types.size(); ++i) {
    const std::string suffix = types.size() > 1 ? fmt::format(".{}", i) : "";
    values.push_back(
        {fmt::format("{}{}{}{}", node.layer, node.layer.empty() ? "" : "/", node.op, suffix),
         types[i],
         kind,
         id,
         static_cast<std::uint32_t>(i),
         {}});
    node.outputs.emplace_back(values.size() - 1);
  }
  nodes.push_back(std::move(node));
  return id;
}

std::vector<std::vector<NodeId>> readers(const Graph& graph) {
  std::vector<std::vector<NodeId>> out(graph.values.size());
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId input : graph.nodes[n].inputs) {
      if (!input.valid()) continue;
      auto& list = out[input.index()];
      if (list.empty() || list.back() != NodeId(n)) list.emplace_back(n);
    }
  }
  return out;
}

bool has_phase(const Graph& graph, Phase phase) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const Node& node) { return node.phase == phase; });
}

}  // namespace plimsoll::ir
