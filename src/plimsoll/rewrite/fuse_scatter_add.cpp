#include "plimsoll/rewrite/fuse_scatter_add.h"

#include "plimsoll/rewrite/graph_editor.h"

namespace plimsoll::rewrite {
namespace {

bool is_new_gather_grad(const GraphEditor& edit, ValueId value) {
  const ir::Node* node = edit.producer(value);
  return node != nullptr && node->op == "gather_grad" && node->inputs.size() == 2 &&
         edit.has_one_reader(value);
}

}  // namespace

Result<ir::Graph> fuse_scatter_add(const ir::Graph& graph) {
  GraphEditor edit(graph);
  for (std::size_t n = 0; n < edit.original_nodes(); ++n) {
    const ir::Node add = edit.graph().node(NodeId(n));
    if (add.op != "add" || add.phase != ir::Phase::kBackward || add.inputs[0] == add.inputs[1])
      continue;
    const bool second = is_new_gather_grad(edit, add.inputs[1]);
    if (!second && !is_new_gather_grad(edit, add.inputs[0])) continue;
    const ValueId sum = add.inputs[second ? 0 : 1];
    const ir::Node scatter = *edit.producer(add.inputs[second ? 1 : 0]);
    if (edit.producer(sum) == nullptr || !edit.has_one_reader(sum)) continue;
    if (edit.graph().value(sum).type != edit.graph().value(add.outputs[0]).type) continue;
    PLIMSOLL_TRY(const std::vector<ValueId> made,
                 edit.insert(NodeId(n), "gather_grad", {scatter.inputs[0], scatter.inputs[1], sum},
                             scatter.attributes));
    edit.replace(add.outputs[0], made[0]);
  }
  return edit.finish();
}

}  // namespace plimsoll::rewrite
