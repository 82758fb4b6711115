#include "plimsoll/rewrite/narrow_lookups.h"

#include <algorithm>
#include <map>
#include <optional>

#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/graph_editor.h"

namespace plimsoll::rewrite {
namespace {

bool is_narrow(ir::DType dtype) {
  return dtype == ir::DType::kBF16 || dtype == ir::DType::kF16;
}

// A cast of this weight to a narrow type.
std::optional<NodeId> narrow_reader(const GraphEditor& edit, ValueId weight) {
  const auto& readers = edit.readers(weight);
  const auto found = std::ranges::find_if(readers, [&](NodeId reader) {
    const ir::Node& node = edit.graph().node(reader);
    return node.op == "cast" && is_narrow(edit.graph().value(node.outputs[0]).type.dtype);
  });
  return found == readers.end() ? std::nullopt : std::optional(*found);
}

}  // namespace

Result<ir::Graph> narrow_lookups(const ir::Graph& graph) {
  GraphEditor edit(graph);
  std::map<ValueId, ValueId> casts;  // by weight: the cast that stands before its lookups
  for (std::size_t n = 0; n < edit.original_nodes(); ++n) {
    const NodeId lookup(n);
    const ir::Node node = edit.graph().node(lookup);
    if (node.op != "gather") continue;
    const ir::Value table = edit.graph().value(node.inputs[0]);
    if (table.kind != ir::ValueKind::kWeight || table.type.dtype != ir::DType::kF32) continue;
    const std::optional<NodeId> reader = narrow_reader(edit, node.inputs[0]);
    if (!reader) continue;
    const ir::Node old = edit.graph().node(*reader);
    if (*reader < lookup) casts.try_emplace(node.inputs[0], old.outputs[0]);
    if (!casts.contains(node.inputs[0])) {
      PLIMSOLL_TRY(const std::vector<ValueId> cast,
                   edit.insert(lookup, "cast", {node.inputs[0]}, old.attributes));
      casts[node.inputs[0]] = cast[0];
      edit.replace(old.outputs[0], cast[0]);
    }
    PLIMSOLL_TRY(
        const std::vector<ValueId> rows,
        edit.insert(lookup, "gather", {casts[node.inputs[0]], node.inputs[1]}, node.attributes));
    PLIMSOLL_TRY(
        const std::vector<ValueId> wide,
        edit.insert(lookup, "cast", rows, {{"to", std::string(ir::name(ir::DType::kF32))}}));
    edit.replace(node.outputs[0], wide[0]);
  }
  if (casts.empty()) return graph;
  ir::Graph out = edit.finish();
  PLIMSOLL_RETURN_IF_ERROR(ops::verify(out));
  return out;
}

}  // namespace plimsoll::rewrite
