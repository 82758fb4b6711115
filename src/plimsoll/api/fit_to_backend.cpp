#include "plimsoll/api/fit_to_backend.h"

#include "plimsoll/plan/fit/no_recompute_plan.h"
#include "plimsoll/profile/operator_costs.h"
#include "plimsoll/rewrite/drop_casts.h"
#include "plimsoll/rewrite/fuse_residuals.h"
#include "plimsoll/rewrite/group_casts.h"
#include "plimsoll/rewrite/group_updates.h"
#include "plimsoll/rewrite/hoist_reorders.h"
#include "plimsoll/rewrite/lay_out_weights.h"
#include "plimsoll/rewrite/layouts.h"
#include "plimsoll/rewrite/pad_rows.h"

namespace plimsoll::api {

namespace {

Result<ir::Graph> before_layouts(ir::Graph graph, const kernels::BackendRewrites& rewrites) {
  if (rewrites.drops_casts) {
    PLIMSOLL_TRY(graph, rewrite::drop_casts(graph));
  }
  if (rewrites.fuses_residuals) {
    PLIMSOLL_TRY(graph, rewrite::fuse_residuals(graph));
  }
  return graph;
}

Result<ir::Graph> behind_layouts(ir::Graph graph, const kernels::BackendRewrites& rewrites) {
  graph = rewrite::hoist_reorders(std::move(graph));
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

rewrite::LayoutOptions layout_options(const kernels::Backend& backend) {
  rewrite::LayoutOptions out;
  out.weights_layout = rewrite::asked_once([&backend](const ir::Graph& of, const ir::Node& node) {
    return backend.weights_layout(of, node);
  });
  out.least_channels = backend.least_channels_last();
  out.weights_lie_so = backend.rewrites().lays_out_weights;
  return out;
}

double seconds_of(const ir::Graph& graph, const schedule::DeviceProfile& profile) {
  double out = 0;
  for (const ir::Node& node : graph.nodes) out += profile::node_cost(profile, graph, node).seconds;
  return out;
}

}  // namespace

Result<ir::Graph> fit_to_backend(ir::Graph graph, const kernels::Backend& backend,
                                 const schedule::DeviceProfile* prices) {
  const kernels::BackendRewrites rewrites = backend.rewrites();
  PLIMSOLL_TRY(graph, before_layouts(std::move(graph), rewrites));
  rewrite::LayoutOptions layouts = layout_options(backend);
  PLIMSOLL_TRY(ir::Graph by_rule, rewrite::choose_layouts(graph, layouts));
  if (prices == nullptr) return behind_layouts(std::move(by_rule), rewrites);
  layouts.price = [&](const ir::Graph& of, const ir::Node& node) {
    const schedule::Cost cost = profile::node_cost(*prices, of, node);
    return rewrite::LayoutPrice{cost.seconds, cost.measured};
  };
  PLIMSOLL_TRY(ir::Graph by_price, rewrite::choose_layouts(graph, layouts));
  const bool differs = by_price != by_rule;
  PLIMSOLL_TRY(by_rule, behind_layouts(std::move(by_rule), rewrites));
  if (!differs) return by_rule;
  PLIMSOLL_TRY(by_price, behind_layouts(std::move(by_price), rewrites));
  return seconds_of(by_price, *prices) < seconds_of(by_rule, *prices) ? by_price : by_rule;
}

Result<std::vector<ir::Graph>> fit_to_other_layouts(ir::Graph graph,
                                                    const kernels::Backend& backend) {
  const kernels::BackendRewrites rewrites = backend.rewrites();
  PLIMSOLL_TRY(graph, before_layouts(std::move(graph), rewrites));
  rewrite::LayoutOptions layouts = layout_options(backend);
  PLIMSOLL_TRY(ir::Graph plain, rewrite::keep_row_major(graph, layouts));
  layouts.least_channels = 0;
  PLIMSOLL_TRY(ir::Graph turned, rewrite::choose_layouts(graph, layouts));
  std::vector<ir::Graph> out;
  for (ir::Graph* one : {&plain, &turned}) {
    PLIMSOLL_TRY(ir::Graph fitted, behind_layouts(std::move(*one), rewrites));
    out.push_back(std::move(fitted));
  }
  return out;
}

Result<ir::Graph> assign_layouts(const ir::Graph& graph, const kernels::Backend& backend) {
  PLIMSOLL_TRY(ir::Graph out, rewrite::choose_layouts(graph, layout_options(backend)));
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
