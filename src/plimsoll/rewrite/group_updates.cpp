#include "plimsoll/rewrite/group_updates.h"

#include <map>
#include <vector>

#include "plimsoll/ops/normalization/norm.h"
#include "plimsoll/ops/registry.h"
#include "plimsoll/ops/update/update.h"
#include "plimsoll/rewrite/graph_editor.h"

namespace plimsoll::rewrite {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 20;
constexpr std::int64_t kMostChannels = std::int64_t{1} << 16;
constexpr std::size_t kInputs = 5;  // weight, gradient, two moments, step

// All four tensors of an update lie alike, without gaps.
bool is_small_update(const ir::Graph& graph, const ir::Node& node) {
  if (node.op != "adamw" || node.inputs.size() != kInputs) return false;
  const ir::TensorType& weight = graph.value(node.inputs[0]).type;
  if (weight.shape.elements() > kMostElements || weight.shape.elements() == 0 ||
      weight.layout.block_count != 0 || weight.dtype != ir::DType::kF32)
    return false;
  for (std::size_t i = 1; i + 1 < kInputs; ++i) {
    if (graph.value(node.inputs[i]).type.layout != weight.layout) return false;
  }
  return true;
}

// What updates of one group have in common.
std::string kind_of(const ir::Graph& graph, const ir::Node& node) {
  std::string out = fmt::format("{} {}", node.inputs[kInputs - 1].index(),
                                ir::name(graph.value(node.inputs[1]).type.dtype));
  const ops::AttributeReader attributes = ops::attributes_of(node);
  for (const char* name : {"lr", "beta1", "beta2", "epsilon", "weight_decay"})
    out += fmt::format(" {}={:.17g}", name, attributes.real(name));
  return out;
}

// A norm's step from running statistics to the next ones, in fp32.
bool is_statistics_update(const ir::Graph& graph, const ir::Node& node) {
  if (node.op != "batch_norm_update") return false;
  const ir::TensorType& type = graph.value(node.inputs[0]).type;
  return type.dtype == ir::DType::kF32 && type.shape.elements() > 0 &&
         type.shape.elements() <= kMostChannels;
}

// The node that does what those of a group do, in the place of its last: inputs and results kind by
// kind, and behind the inputs what all of them read.
Status join(GraphEditor& edit, const std::vector<NodeId>& group, std::string_view op,
            std::size_t kinds, const std::vector<ValueId>& shared, ir::Attributes attributes) {
  std::vector<ValueId> inputs;
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    for (const NodeId member : group) inputs.push_back(edit.graph().node(member).inputs[kind]);
  }
  inputs.insert(inputs.end(), shared.begin(), shared.end());
  PLIMSOLL_TRY(const std::vector<ValueId> made,
               edit.insert(group.back(), op, std::move(inputs), std::move(attributes)));
  for (std::size_t i = 0; i < made.size(); ++i) {
    const NodeId member = group[i % group.size()];
    edit.replace(edit.graph().node(member).outputs[i / group.size()], made[i]);
  }
  return {};
}

Status join_updates(GraphEditor& edit, const std::vector<NodeId>& group) {
  const ir::Node last = edit.graph().node(group.back());
  return join(edit, group, "adamw_group", kInputs - 1, {last.inputs[kInputs - 1]}, last.attributes);
}

Status join_statistics(GraphEditor& edit, const std::vector<NodeId>& group) {
  ir::Ints counts;
  for (const NodeId member : group)
    counts.push_back(ops::attributes_of(edit.graph().node(member)).integer("count"));
  const double momentum = ops::attributes_of(edit.graph().node(group.back())).real("momentum");
  return join(edit, group, "batch_norm_update_group", 4, {},
              {{"momentum", momentum}, {"counts", counts}});
}

}  // namespace

Result<ir::Graph> group_updates(const ir::Graph& graph) {
  static_assert(ops::kStatisticsGroup == ops::kUpdateGroup);
  GraphEditor edit(graph);
  std::map<std::string, std::vector<NodeId>> waiting;
  for (std::size_t n = 0; n < edit.original_nodes(); ++n) {
    const ir::Node node = edit.graph().node(NodeId(n));
    const bool statistics = is_statistics_update(edit.graph(), node);
    if (!statistics && !is_small_update(edit.graph(), node)) continue;
    std::vector<NodeId>& group =
        waiting[statistics ? fmt::format("{:.17g}", ops::attributes_of(node).real("momentum"))
                           : kind_of(edit.graph(), node)];
    group.push_back(NodeId(n));
    if (group.size() < static_cast<std::size_t>(ops::kUpdateGroup)) continue;
    PLIMSOLL_RETURN_IF_ERROR(statistics ? join_statistics(edit, group) : join_updates(edit, group));
    group.clear();
  }
  ir::Graph out = edit.finish();
  PLIMSOLL_RETURN_IF_ERROR(ops::verify(out));
  return out;
}

}  // namespace plimsoll::rewrite
