#include "plimsoll/rewrite/lay_out_weights.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/graph_editor.h"

namespace plimsoll::rewrite {
namespace {

// One update of a weight, and what has to lie like its gradient.
struct Candidate {
  std::size_t node;                                  // the update
  ValueId gradient;                                  // before it is reordered
  std::vector<ValueId> sources;                      // the weight, then its moments
  std::vector<ValueId> casts;                        // of the weight
  std::vector<std::pair<ValueId, ValueId>> instead;  // what a reorder made, and what to read
};

class WeightLayouts {
 public:
  explicit WeightLayouts(ir::Graph graph)
      : graph_(std::move(graph)),
        readers_(ir::readers(graph_)),
        updated_by_(graph_.values.size()),
        kept_(graph_.values.size(), false) {
    for (const ValueId output : graph_.outputs) kept_[output.index()] = true;
    for (const ir::Update& update : graph_.updates)
      updated_by_[update.source.index()] = update.next;
  }

  ir::Graph run() && {
    std::vector<ValueId> instead(graph_.values.size());
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const std::optional<Candidate> found = candidate(n);
      if (!found) continue;
      const ir::Layout layout = graph_.value(found->gradient).type.layout;
      ir::Node& node = graph_.nodes[n];
      node.inputs[1] = found->gradient;
      for (const std::span<const ValueId> list :
           {std::span(found->sources), std::span(found->casts),
            std::span<const ValueId>(node.outputs)}) {
        for (const ValueId value : list) graph_.value(value).type.layout = layout;
      }
      for (const auto& [made, by] : found->instead) instead[made.index()] = by;
    }
    for (ir::Node& node : graph_.nodes) {
      for (ValueId& input : node.inputs) {
        if (input.valid() && instead[input.index()].valid()) input = instead[input.index()];
      }
    }
    return without_dead_nodes(std::move(graph_));
  }

 private:
  const ir::Node* maker(ValueId value) const {
    const NodeId producer = graph_.value(value).producer;
    return producer.valid() ? &graph_.node(producer) : nullptr;
  }

  // Reads of `value` other than by the update are reorders to this layout, or casts followed by
  // such; they are noted.
  bool reads_in(ValueId value, std::size_t update, const ir::Layout& layout, bool casts,
                Candidate& out) const {
    return std::ranges::all_of(readers_[value.index()], [&](NodeId reader) {
      if (reader.index() == update) return true;
      const ir::Node& node = graph_.node(reader);
      const ValueId made = node.outputs[0];
      if (kept_[made.index()]) return false;
      if (node.op == "reorder" && graph_.value(made).type.layout == layout) {
        out.instead.emplace_back(made, value);
        return true;
      }
      if (node.op != "cast" || !casts) return false;
      out.casts.push_back(made);
      return reads_in(made, update, layout, false, out);
    });
  }

  std::optional<Candidate> candidate(std::size_t n) const {
    const ir::Node& node = graph_.nodes[n];
    const std::vector<ops::InPlace::Pair>& pairs = ops::definition_of(node).in_place.pairs();
    if (!ops::definition_of(node).in_place.must() || node.inputs.size() < 2 || pairs.empty() ||
        pairs[0].input != 0)
      return std::nullopt;
    const ir::Node* reorder = maker(node.inputs[1]);
    if (reorder == nullptr || reorder->op != "reorder" || kept_[node.inputs[1].index()] ||
        readers_[node.inputs[1].index()].size() != 1)
      return std::nullopt;
    Candidate out;
    out.gradient = reorder->inputs[0];
    const ir::Layout& layout = graph_.value(out.gradient).type.layout;
    if (layout.block_count != 0) return std::nullopt;
    for (const ops::InPlace::Pair& pair : pairs) {
      const ValueId source = node.inputs[static_cast<std::size_t>(pair.input)];
      const ir::Value& value = graph_.value(source);
      const bool moment_is_shared = pair.input != 0 && readers_[source.index()].size() != 1;
      if (value.producer.valid() || value.kind == ir::ValueKind::kInput ||
          !value.type.layout.is_row_major() || kept_[source.index()] || moment_is_shared ||
          value.type.shape != graph_.value(out.gradient).type.shape ||
          updated_by_[source.index()] != node.outputs[static_cast<std::size_t>(pair.output)] ||
          graph_.data(source) != nullptr)
        return std::nullopt;
      out.sources.push_back(source);
    }
    for (const ValueId made : node.outputs) {
      if (!readers_[made.index()].empty()) return std::nullopt;
    }
    if (!reads_in(out.sources[0], n, layout, true, out) || out.instead.empty()) return std::nullopt;
    return out;
  }

  ir::Graph graph_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<ValueId> updated_by_;
  std::vector<bool> kept_;
};

}  // namespace

Result<ir::Graph> lay_out_weights(ir::Graph graph) {
  ir::Graph out = WeightLayouts(std::move(graph)).run();
  PLIMSOLL_RETURN_IF_ERROR(ops::verify(out));
  return out;
}

}  // namespace plimsoll::rewrite
