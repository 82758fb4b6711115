#include "plimsoll/rewrite/pool_before_relu.h"

#include "plimsoll/rewrite/graph_editor.h"

namespace plimsoll::rewrite {

Result<ir::Graph> pool_before_relu(const ir::Graph& graph) {
  GraphEditor edit(graph);
  for (std::size_t n = 0; n < edit.original_nodes(); ++n) {
    const ir::Node pool = edit.graph().node(NodeId(n));
    if (pool.op != "max_pool") continue;
    const ir::Node* relu = edit.producer(pool.inputs[0]);
    if (relu == nullptr || relu->op != "relu" || !edit.has_one_reader(pool.inputs[0])) continue;
    PLIMSOLL_TRY(const std::vector<ValueId> pooled,
                 edit.insert(NodeId(n), "max_pool", {relu->inputs[0]}, pool.attributes));
    PLIMSOLL_TRY(const std::vector<ValueId> result, edit.insert(NodeId(n), "relu", {pooled[0]}));
    edit.replace(pool.outputs[0], result[0]);
    edit.replace(pool.outputs[1], pooled[1]);
  }
  return edit.finish();
}

}  // namespace plimsoll::rewrite
