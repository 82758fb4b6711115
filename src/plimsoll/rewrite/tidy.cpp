#include "plimsoll/rewrite/tidy.h"

#include "plimsoll/ops/catalogue.h"
#include "plimsoll/rewrite/fuse_activation.h"
#include "plimsoll/rewrite/graph_editor.h"
#include "plimsoll/rewrite/pool_before_relu.h"

namespace plimsoll::rewrite {

Result<ir::Graph> tidy(const ir::Graph& graph, const TidyOptions& options) {
  ir::Graph out = options.fuse_activations ? fuse_activations(graph, options.trains) : graph;
  if (options.pool_before_relu) {
    PLIMSOLL_TRY(out, pool_before_relu(out));
  }
  out = without_dead_nodes(std::move(out));
  PLIMSOLL_RETURN_IF_ERROR(ops::verify(out));
  return out;
}

}  // namespace plimsoll::rewrite
