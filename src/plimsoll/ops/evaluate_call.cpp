#include "plimsoll/ops/evaluate_call.h"

#include "plimsoll/ops/catalogue.h"
#include "plimsoll/ops/interpreter.h"

namespace plimsoll::ops {
namespace {

// A graph of sources and one node, whose outputs are not made yet.
ir::Node node_over_sources(ir::Graph& graph, std::string_view op,
                           const std::vector<ir::TensorType>& inputs,
                           const ir::Attributes& attributes) {
  ir::Node node;
  node.op = op;
  node.attributes = attributes;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    node.inputs.push_back(
        graph.add_source(fmt::format("in{}", i), ir::ValueKind::kInput, inputs[i]));
  }
  return node;
}

}  // namespace

Result<std::vector<ir::TensorType>> infer_call(std::string_view op,
                                               const std::vector<ir::TensorType>& inputs,
                                               const ir::Attributes& attributes) {
  ir::Graph graph;
  const ir::Node node = node_over_sources(graph, op, inputs, attributes);
  return infer(graph, node);
}

Result<std::vector<Array>> evaluate_call(std::string_view op, const std::vector<Array>& inputs,
                                         const ir::Attributes& attributes) {
  ir::Graph graph;
  std::vector<ir::TensorType> types;
  std::vector<const Array*> arrays;
  for (const Array& input : inputs) {
    types.push_back(input.type);
    arrays.push_back(&input);
  }
  ir::Node node = node_over_sources(graph, op, types, attributes);
  PLIMSOLL_TRY(const std::vector<TensorType> outputs, infer(graph, node));
  const NodeId id = graph.add_node(std::move(node), outputs, ir::ValueKind::kActivation);
  return evaluate(graph, graph.node(id), std::move(arrays));
}

}  // namespace plimsoll::ops
