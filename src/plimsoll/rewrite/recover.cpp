#include "plimsoll/rewrite/recover.h"

#include "plimsoll/ops/registry.h"

namespace plimsoll::rewrite {

Result<ir::Graph> recover_patterns(ir::Graph graph, const RecoverOptions& options) {
  for (int round = 0; round < 8; ++round) {
    GraphEditor edit(std::move(graph));
    int changes = 0;
    const auto run = [&](auto recovery) -> Status {
      PLIMSOLL_TRY(const int count, recovery(edit));
      changes += count;
      return {};
    };
    PLIMSOLL_RETURN_IF_ERROR(run(merge_equal_nodes));
    PLIMSOLL_RETURN_IF_ERROR(run(simplify_movement));
    PLIMSOLL_RETURN_IF_ERROR(run(recover_linear));
    PLIMSOLL_RETURN_IF_ERROR(run(recover_activations));
    PLIMSOLL_RETURN_IF_ERROR(run(recover_norms));
    PLIMSOLL_RETURN_IF_ERROR(run([&](GraphEditor& e) { return recover_attention(e, options); }));
    graph = edit.finish();
    if (changes == 0) break;
  }
  PLIMSOLL_RETURN_IF_ERROR(ops::verify(graph));
  return graph;
}

}  // namespace plimsoll::rewrite
