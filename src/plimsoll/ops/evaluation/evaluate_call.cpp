#include "plimsoll/ops/evaluation/evaluate_call.h"

#include "plimsoll/ops/evaluation/interpreter.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::ops {
namespace {

// A graph of sources and one node, whose outputs are not made yet; null for an absent input.
ir::Node node_over_sources(ir::Graph& graph, std::string_view op,
                           const std::vector<const ir::TensorType*>& inputs,
                           const ir::Attributes& attributes) {
  ir::Node node;
  node.op = op;
  node.attributes = attributes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    node.inputs.push_back(
        inputs[i] ? graph.add_source(fmt::format("in{}", i), ir::ValueKind::kInput, *inputs[i])
                  : ValueId());
  }
  return node;
}

}  // namespace

Result<std::vector<ir::TensorType>> infer_call(std::string_view op,
                                               const std::vector<ir::TensorType>& inputs,
                                               const ir::Attributes& attributes) {
  ir::Graph graph;
  std::vector<const ir::TensorType*> types;
  for (const ir::TensorType& type : inputs) types.push_back(&type);
  const ir::Node node = node_over_sources(graph, op, types, attributes);
  return infer(graph, node);
}

Result<std::vector<Array>> evaluate_call(std::string_view op, const std::vector<Array>& inputs,
                                         const ir::Attributes& attributes) {
  std::vector<const Array*> arrays;
  for (const Array& input : inputs) arrays.push_back(&input);
  return evaluate_call(op, std::move(arrays), attributes);
}

Result<std::vector<Array>> evaluate_call(std::string_view op, std::vector<const Array*> inputs,
                                         const ir::Attributes& attributes) {
  ir::Graph graph;
  std::vector<const ir::TensorType*> types;
  for (const Array* input : inputs) types.push_back(input ? &input->type : nullptr);
  ir::Node node = node_over_sources(graph, op, types, attributes);
  PLIMSOLL_TRY(const std::vector<TensorType> outputs, infer(graph, node));
  const NodeId id = graph.add_node(std::move(node), outputs, ir::ValueKind::kActivation);
  return evaluate(graph, graph.node(id), std::move(inputs));
}

}  // namespace plimsoll::ops
