// Equal nodes become one; movement of bytes that cancels or adds up is written once.
#include <algorithm>
#include <unordered_map>

#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/pattern.h"
#include "plimsoll/rewrite/recover.h"

namespace plimsoll::rewrite {
namespace {

bool may_merge(const ir::Node& node) {
  return node.phase == ir::Phase::kForward && node.op != "dropout" &&
         ops::definition_of(node).recompute != ops::Recompute::kNever;
}

Result<int> merge_constants(GraphEditor& edit) {
  std::unordered_map<std::string, ValueId> seen;
  std::vector<std::pair<ValueId, ValueId>> equal;
  for (const ir::Constant& constant : edit.graph().constants) {
    std::string key = ir::to_string(edit.graph().value(constant.value).type);
    key.append(reinterpret_cast<const char*>(constant.data.data()), constant.data.size());
    const auto [place, fresh] = seen.emplace(std::move(key), constant.value);
    if (!fresh && !edit.readers(constant.value).empty())
      equal.emplace_back(constant.value, place->second);
  }
  for (const auto& [old, by] : equal) edit.replace(old, by);
  return static_cast<int>(equal.size());
}

// x when the node only renames it.
ValueId identity_of(const GraphEditor& edit, const ir::Node& node) {
  const ir::Graph& graph = edit.graph();
  const ValueId y = node.outputs.front();
  if (node.inputs.empty() || !node.inputs.front().valid()) return {};
  const ValueId x = node.inputs.front();
  // An output must be made by a node, and be one value.
  if (edit.is_output(y) && (edit.is_output(x) || edit.producer(x) == nullptr)) return {};
  const bool same = graph.value(x).type == graph.value(y).type;
  if (node.op == "identity" && same) return x;
  if ((node.op == "reshape" || node.op == "expand" || node.op == "cast") && same) return x;
  if (node.op == "transpose" && same) {
    const ir::Ints perm = node.attributes.integers("perm");
    if (std::is_sorted(perm.begin(), perm.end())) return x;
  }
  return {};
}

// A transpose that moves only axes of extent 1 leaves the bytes where they are.
bool keeps_order(const GraphEditor& edit, const ir::Node& node) {
  const ir::Shape& shape = edit.graph().value(node.inputs.front()).type.shape;
  std::int64_t last = -1;
  for (const std::int64_t axis : node.attributes.integers("perm")) {
    if (shape[static_cast<int>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

ir::Ints dims_of(const GraphEditor& edit, ValueId value) {
  const ir::Shape& shape = edit.graph().value(value).type.shape;
  return {shape.begin(), shape.end()};
}

// Two leading axes merged, the two last swapped, the leading ones apart again: only the swap
// remains.
Result<bool> join_unmerged(GraphEditor& edit, NodeId id) {
  const ir::Node node = edit.graph().node(id);
  if (node.op != "reshape") return false;
  const ir::Node* swap = made_by(edit, node.inputs[0], "transpose");
  if (swap == nullptr || swap->attributes.integers("perm") != ir::Ints{0, 2, 1}) return false;
  const ir::Node* merge = made_by(edit, swap->inputs[0], "reshape");
  if (merge == nullptr) return false;
  const ir::Ints from = dims_of(edit, merge->inputs[0]);
  const ir::Ints flat = dims_of(edit, swap->inputs[0]);
  const ir::Ints to = dims_of(edit, node.outputs[0]);
  if (from.size() != 4 || flat != ir::Ints{from[0] * from[1], from[2], from[3]} ||
      to != ir::Ints{from[0], from[1], from[3], from[2]}) {
    return false;
  }
  PLIMSOLL_TRY(const auto made,
               edit.insert(id, "transpose", {merge->inputs[0]}, {{"perm", ir::Ints{0, 1, 3, 2}}}));
  edit.replace(node.outputs[0], made[0]);
  return true;
}

Result<bool> join_movement(GraphEditor& edit, NodeId id) {
  const ir::Node node = edit.graph().node(id);
  const ValueId y = node.outputs.front();
  if (node.op == "transpose" && keeps_order(edit, node)) {
    PLIMSOLL_TRY(const auto made,
                 edit.insert(id, "reshape", {node.inputs[0]}, {{"shape", dims_of(edit, y)}}));
    edit.replace(y, made[0]);
    return true;
  }
  PLIMSOLL_TRY(const bool unmerged, join_unmerged(edit, id));
  if (unmerged) return true;
  const ir::Node* before = edit.producer(node.inputs.empty() ? ValueId() : node.inputs[0]);
  if (before == nullptr || before->op != node.op) return false;
  if (node.op == "reshape") {
    PLIMSOLL_TRY(const auto made,
                 edit.insert(id, "reshape", {before->inputs[0]}, {{"shape", dims_of(edit, y)}}));
    edit.replace(y, made[0]);
    return true;
  }
  if (node.op == "transpose") {
    const ir::Ints first = before->attributes.integers("perm");
    ir::Ints both;
    for (const std::int64_t axis : node.attributes.integers("perm"))
      both.push_back(first[static_cast<std::size_t>(axis)]);
    PLIMSOLL_TRY(const auto made,
                 edit.insert(id, "transpose", {before->inputs[0]}, {{"perm", both}}));
    edit.replace(y, made[0]);
    return true;
  }
  return false;
}

// Gather with one known index is a slice, which may be a view.
Result<bool> gather_is_slice(GraphEditor& edit, NodeId id) {
  const ir::Node node = edit.graph().node(id);
  if (node.op != "gather") return false;
  const ir::Value& indices = edit.graph().value(node.inputs[1]);
  if (indices.kind != ir::ValueKind::kConstant || indices.type.shape.elements() != 1) return false;
  const auto number = number_of(edit, node.inputs[1]);
  const ir::Shape& shape = edit.graph().value(node.inputs[0]).type.shape;
  auto axis = static_cast<std::size_t>(ops::attributes_of(node).integer("axis"));
  if (ops::attributes_of(node).integer("axis") < 0) axis += static_cast<std::size_t>(shape.rank());
  ir::Ints starts(static_cast<std::size_t>(shape.rank()), 0);
  ir::Ints ends(shape.begin(), shape.end());
  const auto index = static_cast<std::int64_t>(*number);
  starts[axis] = index < 0 ? index + ends[axis] : index;
  if (starts[axis] < 0 || starts[axis] >= ends[axis]) return false;
  ends[axis] = starts[axis] + 1;
  const ir::Ints out = dims_of(edit, node.outputs[0]);
  PLIMSOLL_TRY(
      const auto part,
      edit.insert(id, "slice", {node.inputs[0]},
                  {{"starts", starts}, {"ends", ends}, {"steps", ir::Ints(starts.size(), 1)}}));
  PLIMSOLL_TRY(const auto made, edit.insert(id, "reshape", {part[0]}, {{"shape", out}}));
  edit.replace(node.outputs[0], made[0]);
  return true;
}

}  // namespace

Result<int> merge_equal_nodes(GraphEditor& edit) {
  PLIMSOLL_TRY(int changes, merge_constants(edit));
  std::unordered_map<std::string, NodeId> seen;
  for (std::size_t n = 0; n < edit.original_nodes(); ++n) {
    const ir::Node& node = edit.graph().nodes[n];
    if (!may_merge(node)) continue;
    std::string key = node.op + ir::to_string(node.attributes);
    for (const ValueId input : node.inputs) key += fmt::format(",{}", input.value);
    const auto [place, fresh] = seen.emplace(std::move(key), NodeId(n));
    if (fresh) continue;
    const std::vector<ValueId> outputs = node.outputs;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (edit.readers(outputs[i]).empty() || edit.is_output(outputs[i])) continue;
      edit.replace(outputs[i], edit.graph().node(place->second).outputs[i]);
      ++changes;
    }
  }
  return changes;
}

Result<int> simplify_movement(GraphEditor& edit) {
  int changes = 0;
  for (std::size_t n = 0; n < edit.original_nodes(); ++n) {
    const NodeId id(n);
    const ValueId y = edit.graph().node(id).outputs.front();
    if (edit.readers(y).empty() && !edit.is_output(y)) continue;
    if (const ValueId x = identity_of(edit, edit.graph().node(id)); x.valid()) {
      edit.replace(y, x);
      ++changes;
      continue;
    }
    PLIMSOLL_TRY(const bool joined, join_movement(edit, id));
    PLIMSOLL_TRY(const bool sliced, gather_is_slice(edit, id));
    changes += joined || sliced ? 1 : 0;
  }
  return changes;
}

}  // namespace plimsoll::rewrite
