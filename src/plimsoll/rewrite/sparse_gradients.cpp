#include "plimsoll/rewrite/sparse_gradients.h"

#include <algorithm>

#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/graph_editor.h"

namespace plimsoll::rewrite {
namespace {

// The sum of dense parts sends so many times as much as rows beside it do, and so many times as
// much as rows instead of it.
constexpr std::int64_t kBeside = 100;
constexpr std::int64_t kInstead = 8;
// What one all_gather may gather (dist/communicator.cpp).
constexpr std::int64_t kMostGathered = std::int64_t{256} << 20;

std::int64_t bytes_of(const GraphEditor& edit, ValueId value) {
  return ir::bytes_of(edit.graph().value(value).type).value;
}

bool is_gradient_sum(const ir::Node& node) {
  return node.op == "all_reduce" && node.inputs.size() == 1 &&
         ops::attributes_of(node).integer("fuse") == 1;
}

// The node that puts rows into the gradient; null where that is dense.
const ir::Node* rows_of(const GraphEditor& edit, ValueId gradient) {
  const ir::Node* node = edit.producer(gradient);
  const bool sparse = node != nullptr && node->op == "gather_grad" &&
                      edit.has_one_reader(gradient) &&
                      ops::attributes_of(*node).integer("axis") == 0 &&
                      ops::attributes_of(*node).integers("rows", {}).empty() &&
                      edit.graph().value(node->inputs[1]).type.shape.rank() > 0;
  return sparse ? node : nullptr;
}

bool has_dense_part(const ir::Node& rows) {
  return rows.inputs.size() > 2 && rows.inputs[2].valid();
}

// n ranks: (n - 1) times the rows against 2 (n - 1) / n times the table.
bool is_worth_it(const GraphEditor& edit, const ir::Node& rows, std::int64_t ranks) {
  const std::int64_t table = bytes_of(edit, rows.outputs[0]);
  const std::int64_t sent = bytes_of(edit, rows.inputs[0]) + bytes_of(edit, rows.inputs[1]);
  if (sent > kMostGathered / ranks) return false;
  const std::int64_t times = has_dense_part(rows) ? kBeside : kInstead;
  return sent * ranks <= 2 * table / times;
}

// Of all ranks, sent just before the node `at`; `sum` is the node that they replace.
Result<ValueId> gather_rows(GraphEditor& edit, NodeId at, ValueId value, NodeId sum) {
  const ir::Attributes how = edit.graph().node(sum).attributes;
  PLIMSOLL_TRY(const std::vector<ValueId> made, edit.insert(at, "all_gather", {value}, how, sum));
  return made[0];
}

// What comes behind the last node that `node` reads from: it could stand there.
NodeId earliest(const GraphEditor& edit, const ir::Node& node) {
  std::size_t out = 0;
  for (const ValueId input : node.inputs) {
    const NodeId maker = input.valid() ? edit.graph().value(input).producer : NodeId();
    if (maker.valid()) out = std::max(out, maker.index() + 1);
  }
  return NodeId(out);
}

// The dense part is made as soon as it can be (the backward pass would go on with the gradient of
// what the last layer read, first), and summed at once; `sum` is the node that this replaces.
Result<ValueId> sum_early(GraphEditor& edit, ValueId dense, NodeId at, NodeId sum) {
  const NodeId maker = edit.graph().value(dense).producer;
  if (at != maker) {
    const ir::Node node = edit.graph().node(maker);
    PLIMSOLL_TRY(const std::vector<ValueId> made,
                 edit.insert(at, node.op, node.inputs, node.attributes, maker));
    dense = made[edit.graph().value(dense).output];
    for (std::size_t i = 0; i < made.size(); ++i) edit.replace(node.outputs[i], made[i]);
  } else {
    at = NodeId(maker.index() + 1);
  }
  const ir::Attributes how = edit.graph().node(sum).attributes;
  PLIMSOLL_TRY(const std::vector<ValueId> made, edit.insert(at, "all_reduce", {dense}, how, sum));
  return made[0];
}

// Where it is there: rows are sent at once.
NodeId behind(const GraphEditor& edit, ValueId value) {
  const NodeId maker = edit.graph().value(value).producer;
  return NodeId(maker.valid() ? maker.index() + 1 : 0);
}

Status sum_rows(GraphEditor& edit, NodeId at, const ir::Node& rows) {
  std::vector<ValueId> inputs = rows.inputs;
  NodeId indices_at = behind(edit, inputs[0]);
  if (has_dense_part(rows)) {
    const NodeId early = earliest(edit, *edit.producer(inputs[2]));
    indices_at = early;
    PLIMSOLL_TRY(inputs[2], sum_early(edit, inputs[2], early, at));
  }
  indices_at = std::max(indices_at, behind(edit, inputs[1]));
  PLIMSOLL_TRY(inputs[1], gather_rows(edit, indices_at, inputs[1], at));
  PLIMSOLL_TRY(inputs[0], gather_rows(edit, behind(edit, inputs[0]), inputs[0], at));
  PLIMSOLL_TRY(const std::vector<ValueId> all,
               edit.insert(at, "gather_grad", inputs, rows.attributes));
  edit.replace(edit.graph().node(at).outputs[0], all[0]);
  return {};
}

}  // namespace

Result<ir::Graph> sum_sparse_gradients(const ir::Graph& graph) {
  GraphEditor edit(graph);
  for (std::size_t n = 0; n < edit.original_nodes(); ++n) {
    const ir::Node& sum = edit.graph().node(NodeId(n));
    if (!is_gradient_sum(sum)) continue;
    const ir::Node* found = rows_of(edit, sum.inputs[0]);
    if (found == nullptr || !is_worth_it(edit, *found, ops::attributes_of(sum).integer("ranks")))
      continue;
    const ir::Node rows = *found;  // the graph grows
    if (has_dense_part(rows)) {
      const ValueId dense = rows.inputs[2];
      if (edit.producer(dense) == nullptr || !edit.has_one_reader(dense)) continue;
    }
    PLIMSOLL_RETURN_IF_ERROR(sum_rows(edit, NodeId(n), rows));
  }
  return edit.finish();
}

}  // namespace plimsoll::rewrite
