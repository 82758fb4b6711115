// x W + b and x W^T.
#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/pattern.h"
#include "plimsoll/rewrite/recover.h"

namespace plimsoll::rewrite {
namespace {

// add(linear(x, w), b) with b along the last axis.
Result<bool> take_bias(GraphEditor& edit, NodeId id) {
  const ir::Node node = edit.graph().node(id);
  if (node.op != "add") return false;
  for (int side = 0; side < 2; ++side) {
    const ValueId product = node.inputs[static_cast<std::size_t>(side)];
    const ValueId bias = node.inputs[static_cast<std::size_t>(1 - side)];
    const ir::Node* linear = made_by(edit, product, "linear");
    if (linear == nullptr || !edit.has_one_reader(product)) continue;
    if (linear->inputs.size() > 2 && linear->inputs[2].valid()) continue;
    const ir::Shape& out = edit.graph().value(product).type.shape;
    const ir::Shape& shape = edit.graph().value(bias).type.shape;
    if (shape != ir::Shape{out[out.rank() - 1]} ||
        edit.graph().value(node.outputs[0]).type.shape != out)
      continue;
    const ir::Node copy = *linear;
    PLIMSOLL_TRY(const auto made, edit.insert(id, "linear", {copy.inputs[0], copy.inputs[1], bias},
                                              copy.attributes));
    edit.replace(node.outputs[0], made[0]);
    return true;
  }
  return false;
}

bool swaps_last_two(const ir::Node& node) {
  return node.attributes.integers("perm") == ir::Ints{1, 0};
}

// A weight transposed for the product is read the other way round instead; a product with a weight
// is linear.
Result<bool> read_transposed(GraphEditor& edit, NodeId id) {
  const ir::Node node = edit.graph().node(id);
  if (node.op != "linear" && node.op != "matmul") return false;
  const ValueId w = node.inputs[1];
  if (edit.graph().value(w).type.shape.rank() != 2) return false;
  if (node.op == "matmul" && (ops::attributes_of(node).integer("trans_a") != 0 ||
                              ops::attributes_of(node).integer("trans_b") != 0))
    return false;
  const ir::Node* turned = made_by(edit, w, "transpose");
  const bool from_weight = turned != nullptr && swaps_last_two(*turned);
  const bool is_weight = edit.graph().value(w).kind == ir::ValueKind::kWeight;
  if (!from_weight && (node.op == "linear" || !is_weight)) return false;
  const std::int64_t given = node.op == "linear" ? ops::attributes_of(node).integer("trans_w") : 0;
  const std::int64_t trans = given ^ (from_weight ? 1 : 0);
  std::vector<ValueId> inputs = node.inputs;
  if (from_weight) inputs[1] = turned->inputs[0];
  PLIMSOLL_TRY(const auto made, edit.insert(id, "linear", inputs, {{"trans_w", trans}}));
  edit.replace(node.outputs[0], made[0]);
  return true;
}

// linear on rows laid end to end and spread again afterwards works on the unflattened tensor as
// well.
Result<bool> skip_flattening(GraphEditor& edit, NodeId id) {
  const ir::Node node = edit.graph().node(id);
  if (node.op != "reshape") return false;
  const ir::Node* linear = made_by(edit, node.inputs[0], "linear");
  if (linear == nullptr || !edit.has_one_reader(node.inputs[0])) return false;
  const ir::Node* flat = made_by(edit, linear->inputs[0], "reshape");
  if (flat == nullptr) return false;
  const ir::Shape& x = edit.graph().value(flat->inputs[0]).type.shape;
  const ir::Shape& y = edit.graph().value(node.outputs[0]).type.shape;
  const ir::Shape& wide = edit.graph().value(node.inputs[0]).type.shape;
  if (x.rank() < 2 || x.rank() != y.rank() || wide.rank() != 2) return false;
  for (int axis = 0; axis + 1 < x.rank(); ++axis) {
    if (x[axis] != y[axis]) return false;
  }
  const ir::Shape& rows = edit.graph().value(linear->inputs[0]).type.shape;
  if (x[x.rank() - 1] != rows[rows.rank() - 1] || y[y.rank() - 1] != wide[1]) return false;
  std::vector<ValueId> inputs = linear->inputs;
  inputs[0] = flat->inputs[0];
  const ir::Attributes attributes = linear->attributes;
  PLIMSOLL_TRY(const auto made, edit.insert(id, "linear", inputs, attributes));
  edit.replace(node.outputs[0], made[0]);
  return true;
}

}  // namespace

Result<int> recover_linear(GraphEditor& edit) {
  int changes = 0;
  for (std::size_t n = 0; n < edit.original_nodes(); ++n) {
    const NodeId id(n);
    const ValueId y = edit.graph().node(id).outputs.front();
    if (edit.readers(y).empty() && !edit.is_output(y)) continue;
    for (const auto recovery : {take_bias, read_transposed, skip_flattening}) {
      PLIMSOLL_TRY(const bool changed, recovery(edit, id));
      if (!changed) continue;
      ++changes;
      break;
    }
  }
  return changes;
}

}  // namespace plimsoll::rewrite
