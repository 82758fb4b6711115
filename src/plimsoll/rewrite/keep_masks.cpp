#include "plimsoll/rewrite/keep_masks.h"

#include <algorithm>
#include <map>

#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/graph_editor.h"

namespace plimsoll::rewrite {
namespace {

// The operator that makes the bits which this gradient reads of its second input; empty: none does.
std::string_view mask_for(const ir::Node& node) {
  if (node.op == "relu_grad") return "positive_mask";
  if (node.op == "clip_grad") return "inside_mask";
  return {};
}

// A view of the map that something of the backward pass reads.
bool looked_at_later(const GraphEditor& edit, const ir::Node& reader) {
  if (ops::definition_of(reader).views == nullptr) return false;
  const ir::Graph& graph = edit.graph();
  return std::any_of(reader.outputs.begin(), reader.outputs.end(), [&](ValueId view) {
    const auto& readers = edit.readers(view);
    return edit.is_output(view) || std::any_of(readers.begin(), readers.end(), [&](NodeId id) {
             const ir::Node& node = graph.node(id);
             return node.phase != ir::Phase::kForward || looked_at_later(edit, node);
           });
  });
}

bool needs_only_bits(const GraphEditor& edit, ValueId map) {
  const ir::Graph& graph = edit.graph();
  const ir::Value& value = graph.value(map);
  if (!value.producer.valid() || graph.node(value.producer).phase != ir::Phase::kForward)
    return false;
  if (value.type.dtype != ir::DType::kF32 || edit.is_output(map)) return false;
  const auto& readers = edit.readers(map);
  const bool early = std::any_of(readers.begin(), readers.end(), [&](NodeId id) {
    return graph.node(id).phase == ir::Phase::kForward;
  });
  return early && std::all_of(readers.begin(), readers.end(), [&](NodeId id) {
           const ir::Node& reader = graph.node(id);
           if (reader.phase == ir::Phase::kForward) return !looked_at_later(edit, reader);
           return !mask_for(reader).empty() && reader.inputs[1] == map && reader.inputs[0] != map;
         });
}

}  // namespace

Result<ir::Graph> keep_masks(const ir::Graph& graph) {
  GraphEditor edit(graph);
  // one for all gradients that ask the same
  std::map<std::pair<ValueId, std::string>, ValueId> masks;
  for (std::size_t n = 0; n < edit.original_nodes(); ++n) {
    const ir::Node node = edit.graph().node(NodeId(n));
    const std::string_view mask_op = mask_for(node);
    if (mask_op.empty() || node.phase != ir::Phase::kBackward ||
        !needs_only_bits(edit, node.inputs[1]))
      continue;
    ValueId& mask =
        masks[{node.inputs[1], fmt::format("{}{}", mask_op, ir::to_string(node.attributes))}];
    if (!mask.valid()) {
      // Where the map has just been made: before whoever reads it first.
      const NodeId first = *std::min_element(edit.readers(node.inputs[1]).begin(),
                                             edit.readers(node.inputs[1]).end());
      PLIMSOLL_TRY(const std::vector<ValueId> made,
                   edit.insert(first, mask_op, {node.inputs[1]}, node.attributes));
      mask = made[0];
    }
    PLIMSOLL_TRY(const std::vector<ValueId> result,
                 edit.insert(NodeId(n), "masked", {node.inputs[0], mask}));
    edit.replace(node.outputs[0], result[0]);
  }
  if (masks.empty()) return graph;  // what nothing reads is not ours to remove
  return edit.finish();
}

}  // namespace plimsoll::rewrite
