#include "plimsoll/rewrite/simplify.h"

#include "plimsoll/ops/registry.h"
#include "plimsoll/rewrite/fuse_activation.h"
#include "plimsoll/rewrite/graph_editor.h"
#include "plimsoll/rewrite/patch_product.h"
#include "plimsoll/rewrite/pool_before_relu.h"

namespace plimsoll::rewrite {

Result<ir::Graph> simplify(const ir::Graph& graph, const SimplifyOptions& options) {
  ir::Graph out = options.fuse_activations ? fuse_activations(graph, options.trains) : graph;
  if (options.pool_before_relu) {
    PLIMSOLL_TRY(out, pool_before_relu(out));
  }
  if (options.multiply_patches) {
    PLIMSOLL_TRY(out, multiply_patches(out));
  }
  out = without_dead_nodes(std::move(out));
  PLIMSOLL_RETURN_IF_ERROR(ops::verify(out));
  return out;
}

}  // namespace plimsoll::rewrite
