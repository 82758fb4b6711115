#include "plimsoll/api/fit_to_backend.h"

#include "plimsoll/plan/fit/no_recompute_plan.h"
#include "plimsoll/rewrite/drop_casts.h"
#include "plimsoll/rewrite/fuse_residuals.h"
#include "plimsoll/rewrite/group_casts.h"
#include "plimsoll/rewrite/group_updates.h"
#include "plimsoll/rewrite/hoist_reorders.h"
#include "plimsoll/rewrite/lay_out_weights.h"
#include "plimsoll/rewrite/layouts.h"
#include "plimsoll/rewrite/pad_rows.h"

namespace plimsoll::api {

Result<ir::Graph> fit_to_backend(ir::Graph graph, const kernels::Backend& backend) {
  const kernels::BackendRewrites rewrites = backend.rewrites();
  if (rewrites.drops_casts) {
    PLIMSOLL_TRY(graph, rewrite::drop_casts(graph));
  }
  if (rewrites.fuses_residuals) {
    PLIMSOLL_TRY(graph, rewrite::fuse_residuals(graph));
  }
  PLIMSOLL_TRY(graph, assign_layouts(graph, backend));
  if (rewrites.lays_out_weights) {
    PLIMSOLL_TRY(graph, rewrite::lay_out_weights(std::move(graph)));
  }
  if (rewrites.pads_rows) {
    PLIMSOLL_TRY(graph, rewrite::pad_rows(std::move(graph)));
  }
  if (rewrites.groups_weights) {
    PLIMSOLL_TRY(graph, rewrite::group_updates(graph));
    PLIMSOLL_TRY(graph, rewrite::group_casts(graph));
  }
  return graph;
}

Result<ir::Graph> assign_layouts(const ir::Graph& graph, const kernels::Backend& backend) {
  rewrite::LayoutOptions layouts;
  layouts.weights_layout = [&](const ir::Graph& of, const ir::Node& node) {
    return backend.weights_layout(of, node);
  };
  layouts.least_channels = backend.least_channels_last();
  PLIMSOLL_TRY(ir::Graph out, rewrite::choose_layouts(graph, layouts));
  return rewrite::hoist_reorders(std::move(out));
}

Result<ir::Graph> assign_layouts(const ir::Graph& graph, int threads) {
  return assign_layouts(graph, *kernels::make_cpu_backend(threads));
}

Result<Bytes> quick_arena(const ir::Graph& graph, kernels::Backend& backend,
                          plan::PlanOptions how) {
  PLIMSOLL_TRY(const ir::Graph laid, assign_layouts(graph, backend));
  PLIMSOLL_TRY(how.kernels, kernels::kernel_facts(backend, laid));
  how.alignment = backend.device().alignment();
  PLIMSOLL_TRY(const plan::Workloads work, plan::make_workloads(laid, std::nullopt, how));
  return plan::greedy_arena(work);
}

}  // namespace plimsoll::api
