#include "plimsoll/ir/graph_json.h"

#include "plimsoll/ir/hex.h"
#include "plimsoll/ir/init_names.h"

namespace plimsoll::ir {
namespace {

using Json = nlohmann::ordered_json;

Json value_json(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  Json out = {{"id", id.value},
              {"name", value.name},
              {"kind", name(value.kind)},
              {"dtype", name(value.type.dtype)},
              {"shape", value.type.shape.dims()},
              {"bytes", bytes_of(value.type).value}};
  if (!value.type.layout.is_row_major()) out["layout"] = to_string(value.type.layout);
  if (value.init != Init{}) {
    out["init"] = {{"kind", kInitNames[static_cast<std::size_t>(value.init.kind)]},
                   {"a", value.init.a},
                   {"b", value.init.b}};
  }
  if (const auto* data = graph.data(id)) out["data"] = to_hex(*data);
  return out;
}

Json node_json(const Node& node) {
  Json inputs = Json::array();
  for (const ValueId input : node.inputs)
    inputs.push_back(input.valid() ? Json(input.value) : Json());
  Json outputs = Json::array();
  for (const ValueId output : node.outputs) outputs.push_back(output.value);
  Json attributes = Json::object();
  for (const auto& [key, attribute] : node.attributes.entries()) {
    std::visit([&, &entry = attributes[key]](const auto& content) { entry = content; }, attribute);
  }
  return {{"op", node.op},
          {"inputs", std::move(inputs)},
          {"outputs", std::move(outputs)},
          {"attributes", std::move(attributes)},
          {"phase", name(node.phase)},
          {"layer", node.layer}};
}

}  // namespace

Json to_json(const Graph& graph) {
  Json values = Json::array();
  for (std::size_t v = 0; v < graph.values.size(); ++v)
    values.push_back(value_json(graph, ValueId(v)));
  Json nodes = Json::array();
  for (const Node& node : graph.nodes) nodes.push_back(node_json(node));
  Json outputs = Json::array();
  for (const ValueId output : graph.outputs) outputs.push_back(output.value);
  Json updates = Json::array();
  for (const Update& update : graph.updates) {
    updates.push_back({{"source", update.source.value}, {"next", update.next.value}});
  }
  return {{"schema", 1},
          {"name", graph.name},
          {"values", std::move(values)},
          {"nodes", std::move(nodes)},
          {"outputs", std::move(outputs)},
          {"updates", std::move(updates)}};
}

}  // namespace plimsoll::ir
