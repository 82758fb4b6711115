#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "plimsoll/ir/hex.h"
#include "plimsoll/ir/init_names.h"
#include "plimsoll/ir/symbolic_graph.h"
#include "plimsoll/ir/text.h"

namespace plimsoll::ir {
namespace {

std::string plain_number(std::size_t, std::int64_t number) {
  return std::to_string(number);
}

// `number_` writes a number of the graph, given its place among all of them (symbolic_graph.h).
template <typename NumberAt>
class Writer {
 public:
  Writer(const Graph& graph, NumberAt number) : graph_(graph), number_(std::move(number)) {
    std::size_t count = 0;
    for (const Value& value : graph.values)
      first_of_value_.push_back(
          std::exchange(count, count + static_cast<std::size_t>(value.type.shape.rank())));
    for (const Node& node : graph.nodes) {
      first_of_node_.push_back(count);
      to_string(node.attributes, [&](std::int64_t) { return ++count, std::string(); });
    }
  }

  std::string write(const std::vector<SymbolSize>& symbols = {}) {
    out_ = fmt::format("plimsoll graph 1 {}\n", quoted(graph_.name));
    if (!symbols.empty()) out_ += "symbols";
    for (const SymbolSize& symbol : symbols) put(" {}={}", symbol.name, symbol.size);
    if (!symbols.empty()) out_ += '\n';
    for (const Node& node : graph_.nodes) write_node(node);
    write_sources_below(graph_.values.size());
    for (const ValueId output : graph_.outputs) put("output %{}\n", output.value);
    for (const Update& update : graph_.updates)
      put("update %{} -> %{}\n", update.source.value, update.next.value);
    out_ += "end\n";
    return std::move(out_);
  }

 private:
  template <typename... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  void write_value(ValueId id) {
    const Value& value = graph_.value(id);
    put("%{} {} {} {}[", id.value, name(value.kind), quoted(value.name), name(value.type.dtype));
    for (int axis = 0; axis < value.type.shape.rank(); ++axis) {
      put("{}{}", axis > 0 ? "," : "",
          number_(first_of_value_[id.index()] + static_cast<std::size_t>(axis),
                  value.type.shape[axis]));
    }
    put("]{}", to_string(value.type.layout));
    if (value.init != Init{}) put(" {}", to_string(value.init));
    if (const auto* data = graph_.data(id)) put(" data {}", to_hex(*data));
  }

  // Sources stand close to the first node that follows them in the numbering, so that a layer's
  // weights are read next to the layer.
  void write_sources_below(std::size_t end) {
    for (; next_source_ < end; ++next_source_) {
      if (!is_source(graph_.values[next_source_].kind)) continue;
      write_value(ValueId(next_source_));
      out_ += '\n';
    }
  }

  void write_node(const Node& node) {
    std::size_t end = node.outputs.empty() ? 0 : node.outputs.front().index();
    for (const ValueId input : node.inputs) {
      if (input.valid() && is_source(graph_.value(input).kind))
        end = std::max(end, input.index() + 1);
    }
    write_sources_below(end);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (i > 0) out_ += ", ";
      write_value(node.outputs[i]);
    }
    put("{}= {}(", node.outputs.empty() ? "" : " ", node_word(node.op));
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (i > 0) out_ += ", ";
      if (node.inputs[i].valid()) {
        put("%{}", node.inputs[i].value);
      } else {
        out_ += '_';
      }
    }
    out_ += ')';
    std::size_t number = first_of_node_[static_cast<std::size_t>(&node - graph_.nodes.data())];
    if (!node.attributes.entries().empty()) {
      put(" {}",
          to_string(node.attributes, [&](std::int64_t value) { return number_(number++, value); }));
    }
    put(" {}", name(node.phase));
    if (!node.layer.empty()) put(" {}", quoted(node.layer));
    out_ += '\n';
  }

  static std::string node_word(const std::string& op) { return is_word(op) ? op : quoted(op); }

  const Graph& graph_;
  NumberAt number_;
  std::vector<std::size_t> first_of_value_;
  std::vector<std::size_t> first_of_node_;
  std::string out_;
  std::size_t next_source_ = 0;
};

}  // namespace

std::string to_string(const Init& init) {
  if (init == Init{}) return "";
  return fmt::format("{}({},{})", kInitNames[static_cast<std::size_t>(init.kind)],
                     real_text(init.a), real_text(init.b));
}

std::string to_text(const Graph& graph) {
  return Writer(graph, plain_number).write();
}

std::string to_text(const SymbolicGraph& symbolic) {
  const auto number = [&](std::size_t place, std::int64_t plain) {
    const auto found = std::lower_bound(
        symbolic.varying.begin(), symbolic.varying.end(), place,
        [](const auto& varying, std::size_t wanted) { return varying.first < wanted; });
    if (found == symbolic.varying.end() || found->first != place) return std::to_string(plain);
    return found->second.text(symbolic.sizes);
  };
  return Writer(symbolic.graph, number).write(symbolic.sizes);
}

}  // namespace plimsoll::ir
