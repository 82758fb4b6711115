#include "plimsoll/ir/dot.h"

#include <array>
#include <iterator>

namespace plimsoll::ir {
namespace {

constexpr std::array<std::string_view, kPhaseCount> kPhaseColours = {"#dbe9f6", "#fde0c5",
                                                                     "#d9ead3"};
constexpr std::array<std::string_view, kValueKindCount> kKindColours = {
    "#ffffff", "#fff2cc", "#e6d5f5", "#ead1dc", "#eeeeee", "#ffffff", "#ffffff"};

// Inside a quoted Graphviz label a backslash starts an escape and a quote ends it.
std::string label(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out;
}

// Who an edge comes from: the node that makes the value, or the source itself.
std::string origin(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  return value.producer.valid() ? fmt::format("n{}", value.producer.value)
                                : fmt::format("v{}", id.value);
}

}  // namespace

std::string to_dot(const Graph& graph) {
  std::string out = fmt::format(
      "digraph \"{}\" {{\n  node [fontname=\"DejaVu Sans\", fontsize=10, style=filled];\n"
      "  edge [fontname=\"DejaVu Sans\", fontsize=8];\n",
      label(graph.name));
  const auto put = [&]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  };
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (!is_source(value.kind)) continue;
    put("  v{} [shape=ellipse, fillcolor=\"{}\", label=\"{}\\n{}\"];\n", v,
        kKindColours[static_cast<std::size_t>(value.kind)], label(value.name),
        to_string(value.type));
  }
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    put("  n{} [shape=box, fillcolor=\"{}\", label=\"{}{}{}\"];\n", n,
        kPhaseColours[static_cast<std::size_t>(node.phase)], label(node.layer),
        node.layer.empty() ? "" : "\\n", label(node.op));
    for (const ValueId input : node.inputs) {
      if (input.valid())
        put("  {} -> n{} [label=\"{}\"];\n", origin(graph, input), n,
            to_string(graph.value(input).type));
    }
  }
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    put("  o{} [shape=plaintext, fillcolor=\"#ffffff\", label=\"output {}\"];\n  {} -> o{};\n", i,
        i, origin(graph, graph.outputs[i]), i);
  }
  for (const Update& update : graph.updates) {
    put("  {} -> v{} [style=dashed, constraint=false];\n", origin(graph, update.next),
        update.source.value);
  }
  return out + "}\n";
}

}  // namespace plimsoll::ir
