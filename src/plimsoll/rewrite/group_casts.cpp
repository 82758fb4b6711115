#include "plimsoll/rewrite/group_casts.h"

#include <map>
#include <vector>

#include "plimsoll/ops/elementwise/cast.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/graph_editor.h"

namespace plimsoll::rewrite {
namespace {

// Larger ones take longer than starting a kernel, and all of a group are there from the first on.
constexpr std::int64_t kMostElementsOfCast = std::int64_t{1} << 22;

bool is_cast_of_weight(const ir::Graph& graph, const ir::Node& node) {
  if (node.op != "cast") return false;
  const ir::Value& from = graph.value(node.inputs[0]);
  const ir::TensorType& to = graph.value(node.outputs[0]).type;
  return from.kind == ir::ValueKind::kWeight && from.type.dtype == ir::DType::kF32 &&
         (to.dtype == ir::DType::kBF16 || to.dtype == ir::DType::kF16) &&
         from.type.layout == to.layout && to.layout.block_count == 0 && to.shape.elements() > 0 &&
         to.shape.elements() <= kMostElementsOfCast;
}

}  // namespace

Result<ir::Graph> group_casts(const ir::Graph& graph) {
  GraphEditor edit(graph);
  std::map<ir::DType, std::vector<NodeId>> waiting;
  for (std::size_t n = 0; n < edit.original_nodes(); ++n) {
    const ir::Node node = edit.graph().node(NodeId(n));
    if (!is_cast_of_weight(edit.graph(), node)) continue;
    std::vector<NodeId>& group = waiting[edit.graph().value(node.outputs[0]).type.dtype];
    group.push_back(NodeId(n));
    if (group.size() < static_cast<std::size_t>(ops::kCastGroup)) continue;
    std::vector<ValueId> inputs;
    for (const NodeId member : group) inputs.push_back(edit.graph().node(member).inputs[0]);
    PLIMSOLL_TRY(const std::vector<ValueId> made,
                 edit.insert(group.front(), "cast_group", std::move(inputs), node.attributes));
    for (std::size_t i = 0; i < made.size(); ++i)
      edit.replace(edit.graph().node(group[i]).outputs[0], made[i]);
    group.clear();
  }
  ir::Graph out = edit.finish();
  PLIMSOLL_RETURN_IF_ERROR(ops::verify(out));
  return out;
}

}  // namespace plimsoll::rewrite
