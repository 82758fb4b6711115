#include "plimsoll/ops/evaluation/interpreter.h"

namespace plimsoll::ops {

std::vector<Array> evaluate(const ir::Graph& graph, const ir::Node& node,
                            std::vector<const Array*> inputs) {
  std::vector<Array> outputs;
  for (const TensorType& type : output_types(graph, node)) outputs.emplace_back(type);
  definition_of(node).evaluate({std::move(inputs), outputs, attributes_of(node)});
  for (Array& output : outputs) output.round();
  return outputs;
}

namespace {

Result<Array> source_array(const ir::Graph& graph, ValueId id,
                           const std::unordered_map<std::string, Array>& sources) {
  const ir::Value& value = graph.value(id);
  if (const auto* data = graph.data(id)) return Array::from_bytes(value.type, *data);
  const auto place = sources.find(value.name);
  if (place == sources.end())
    return bad_input("{} '{}' is not given", ir::name(value.kind), value.name);
  const TensorType& given = place->second.type;
  if (given.dtype != value.type.dtype || given.shape != value.type.shape) {
    return bad_input("{} '{}': given as {}, expects {}", ir::name(value.kind), value.name,
                     ir::to_string(given), ir::to_string(value.type));
  }
  return place->second;
}

}  // namespace

Result<Environment> interpret(const ir::Graph& graph,
                              const std::unordered_map<std::string, Array>& sources) {
  Environment values(graph.values.size());
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (!ir::is_source(graph.values[v].kind)) continue;
    PLIMSOLL_TRY(values[v], source_array(graph, ValueId(v), sources));
  }
  for (const ir::Node& node : graph.nodes) {
    std::vector<const Array*> inputs;
    for (const ValueId input : node.inputs)
      inputs.push_back(input.valid() ? &*values[input.index()] : nullptr);
    std::vector<Array> outputs = evaluate(graph, node, std::move(inputs));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      values[node.outputs[i].index()] = std::move(outputs[i]);
  }
  return values;
}

}  // namespace plimsoll::ops
