#include <algorithm>
#include <iterator>

#include "plimsoll/ir/hex.h"
#include "plimsoll/ir/init_names.h"
#include "plimsoll/ir/text.h"

namespace plimsoll::ir {
namespace {

class Writer {
 public:
  explicit Writer(const Graph& graph) : graph_(graph) {}

  std::string write() {
    out_ = fmt::format("plimsoll graph 1 {}\n", quoted(graph_.name));
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
    put("%{} {} {} {}", id.value, name(value.kind), quoted(value.name), to_string(value.type));
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
    if (!node.attributes.entries().empty()) put(" {}", to_string(node.attributes));
    put(" {}", name(node.phase));
    if (!node.layer.empty()) put(" {}", quoted(node.layer));
    out_ += '\n';
  }

  static std::string node_word(const std::string& op) { return is_word(op) ? op : quoted(op); }

  const Graph& graph_;
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
  return Writer(graph).write();
}

}  // namespace plimsoll::ir
