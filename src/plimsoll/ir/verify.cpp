#include <string>
#include <unordered_set>

#include "plimsoll/ir/graph.h"

namespace plimsoll::ir {
namespace {

Status verify_type(const Value& value) {
  if (!fits(value.type.layout, value.type.shape)) {
    return bad_input("value '{}': layout {} does not fit shape {}", value.name,
                     to_string(value.type.layout), to_string(value.type.shape));
  }
  if (!checked_bytes(value.type)) {
    return bad_input("value '{}': the size of {} does not fit 64 bits", value.name,
                     to_string(value.type));
  }
  return {};
}

Status verify_sources(const Graph& graph) {
  std::unordered_set<std::string_view> names;
  for (const Value& value : graph.values) {
    PLIMSOLL_RETURN_IF_ERROR(verify_type(value));
    if (is_source(value.kind) == value.producer.valid()) {
      return bad_input(
          "value '{}': kind {} {}", value.name, name(value.kind),
          value.producer.valid() ? "cannot be made by a node" : "needs a node that makes it");
    }
    if (!is_source(value.kind)) continue;
    if (value.name.empty()) return bad_input("a value of kind {} has no name", name(value.kind));
    if (!names.insert(value.name).second)
      return bad_input("value '{}': the name stands twice", value.name);
  }
  return {};
}

Status verify_nodes(const Graph& graph) {
  std::vector<char> made(graph.values.size(), 0);
  for (std::size_t v = 0; v < graph.values.size(); ++v) made[v] = is_source(graph.values[v].kind);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (const ValueId input : node.inputs) {
      if (!input.valid()) continue;
      if (input.index() >= graph.values.size()) {
        return bad_input("node {} ({}): reads value {}, there are {}", n, node.op, input.value,
                         graph.values.size());
      }
      if (!made[input.index()]) {
        return bad_input("node {} ({}): reads '{}' before it is made", n, node.op,
                         graph.value(input).name);
      }
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId output = node.outputs[i];
      if (output.index() >= graph.values.size() || made[output.index()]) {
        return bad_input("node {} ({}): output {} is no fresh value", n, node.op, i);
      }
      const Value& value = graph.value(output);
      if (value.producer != NodeId(n) || value.output != i) {
        return bad_input("node {} ({}): output '{}' names another producer", n, node.op,
                         value.name);
      }
      made[output.index()] = 1;
    }
  }
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    if (!made[v]) return bad_input("value '{}': no node makes it", graph.values[v].name);
  }
  return {};
}

Status verify_constants(const Graph& graph) {
  std::size_t count = 0;
  for (const Value& value : graph.values) count += value.kind == ValueKind::kConstant;
  if (count != graph.constants.size()) {
    return bad_input("{} constants have {} pieces of data", count, graph.constants.size());
  }
  ValueId last;
  for (const Constant& constant : graph.constants) {
    if (constant.value.index() >= graph.values.size() || (last.valid() && constant.value <= last)) {
      return bad_input("data of constants is out of order");
    }
    last = constant.value;
    const Value& value = graph.value(constant.value);
    if (value.kind != ValueKind::kConstant)
      return bad_input("value '{}': has data but is no constant", value.name);
    const Bytes expected = bytes_of(value.type);
    if (static_cast<std::int64_t>(constant.data.size()) != expected.value) {
      return bad_input("constant '{}': has {} bytes of data, {} needs {}", value.name,
                       constant.data.size(), to_string(value.type), expected);
    }
  }
  return {};
}

Status verify_results(const Graph& graph) {
  for (const ValueId output : graph.outputs) {
    if (output.index() >= graph.values.size())
      return bad_input("an output names value {}, which does not exist", output.value);
  }
  std::vector<char> updated(graph.values.size(), 0);
  for (const Update& update : graph.updates) {
    if (update.source.index() >= graph.values.size() ||
        update.next.index() >= graph.values.size()) {
      return bad_input("an update names a value that does not exist");
    }
    const Value& source = graph.value(update.source);
    const Value& next = graph.value(update.next);
    if (!is_persistent(source.kind))
      return bad_input("value '{}': kind {} cannot be updated", source.name, name(source.kind));
    if (!next.producer.valid())
      return bad_input("value '{}': updated by '{}', which no node makes", source.name, next.name);
    if (source.type != next.type) {
      return bad_input("value '{}': {} updated by {}", source.name, to_string(source.type),
                       to_string(next.type));
    }
    if (updated[update.source.index()]++ || updated[update.next.index()]++) {
      return bad_input("value '{}': updated twice", source.name);
    }
  }
  return {};
}

}  // namespace

Status verify(const Graph& graph) {
  PLIMSOLL_RETURN_IF_ERROR(verify_sources(graph));
  PLIMSOLL_RETURN_IF_ERROR(verify_nodes(graph));
  PLIMSOLL_RETURN_IF_ERROR(verify_constants(graph));
  return verify_results(graph);
}

}  // namespace plimsoll::ir
