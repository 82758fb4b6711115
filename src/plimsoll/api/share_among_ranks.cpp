#include "plimsoll/api/share_among_ranks.h"

#include <algorithm>

#include "plimsoll/api/fit_to_backend.h"
#include "plimsoll/api/pipeline_device.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/ops/collective/shard.h"
#include "plimsoll/rewrite/fuse_collectives.h"
#include "plimsoll/rewrite/shard_training.h"
#include "plimsoll/rewrite/sparse_gradients.h"

namespace plimsoll::api {
namespace {

// Steps on several cards have not been run: theirs stay as they are.
Result<ir::Graph> keeping_all(const Pipeline& p, ir::Graph graph) {
  if (p.ranks.dense_tables || on_card(p)) return graph;
  return rewrite::sum_sparse_gradients(graph);
}

Result<ir::Graph> sharing(const Pipeline& p, ir::Graph graph, const Shard& shard) {
  if (!shard.optimizer) return keeping_all(p, std::move(graph));
  const schedule::DeviceProfile* known = schedule::shipped_profile(on_card(p) ? "h200" : "cpu");
  rewrite::ShardOptions how;
  how.bucket = bucket_for(p.ranks, p.ranks.link.value_or(known->link), graph, true);
  how.alignment = std::max(Bytes(ops::kRunAlignment), p.backend->device().alignment());
  how.gradients = shard.gradients;
  how.weights = shard.weights;
  how.table_rows = !on_card(p);
  return rewrite::shard_training(graph, how);
}

}  // namespace

Result<ir::Graph> share_among_ranks(Pipeline& p, ir::Graph graph) {
  if (p.ranks.size() == 1) return graph;
  if (!p.ranks.shard.automatic) return sharing(p, std::move(graph), p.ranks.shard);
  if (p.planning.budget.empty())
    return fail(
        ErrorCode::kUsage,
        "--shard auto: shares as little as a budget needs; give --budget SIZE, or say what: "
        "--shard optimizer");
  PLIMSOLL_TRY(const Bytes plain, quick_arena(graph, *p.backend, p.planning));
  PLIMSOLL_TRY(const Bytes budget, parse_byte_size(p.planning.budget, plain));
  p.planning.budget = std::to_string(budget.value);
  if (plain <= budget) return keeping_all(p, std::move(graph));
  ir::Graph out;
  for (const Shard& shard :
       {Shard{true, false, false}, Shard{true, true, false}, Shard{true, true, true}}) {
    PLIMSOLL_TRY(out, sharing(p, graph, shard));
    PLIMSOLL_TRY(const Bytes arena, quick_arena(out, *p.backend, p.planning));
    if (arena <= budget) break;
  }
  return out;
}

Result<ir::Graph> join_buckets(const Pipeline& p, ir::Graph graph) {
  if (p.ranks.size() == 1) return graph;
  const bool sums = std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const ir::Node& node) {
    return node.op == "all_reduce" || node.op == "scatter_sums";
  });
  if (!sums)
    return fail(ErrorCode::kUsage,
                "{}: ranks train one model together, and this graph sums no gradients over them; "
                "give --train, or a model without a backward pass of its own",
                p.request.model);
  const schedule::DeviceProfile* known = schedule::shipped_profile(on_card(p) ? "h200" : "cpu");
  const Bytes bucket = bucket_for(p.ranks, p.ranks.link.value_or(known->link), graph);
  return rewrite::fuse_collectives(std::move(graph), bucket);
}

}  // namespace plimsoll::api
