#include "plimsoll/ops/kernel_facts.h"

namespace plimsoll::ops {

std::string signature(const ir::Graph& graph, const ir::Node& node) {
  std::string out = node.op + "(";
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (i > 0) out += ",";
    if (node.inputs[i].valid()) out += ir::to_string(graph.value(node.inputs[i]).type);
  }
  out += ")->(";
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    out += (i > 0 ? "," : "") + ir::to_string(graph.value(node.outputs[i]).type);
  }
  return out + ")" + ir::to_string(node.attributes);
}

KernelFacts KernelTable::of(const ir::Graph& graph, const ir::Node& node) const {
  const auto place = facts.find(signature(graph, node));
  return place == facts.end() ? KernelFacts{} : place->second;
}

}  // namespace plimsoll::ops
