#include "plimsoll/plan/fit/workloads.h"

#include <algorithm>

namespace plimsoll::plan {

bool encodes(const PlanOptions& options) {
  return options.remedies.encode || options.strategy == "encode";
}

Result<std::vector<ValueId>> values_to_pin(const ir::Graph& graph,
                                           const std::vector<std::string>& names) {
  std::vector<ValueId> out;
  for (const std::string& wanted : names) {
    const auto place = std::find_if(graph.values.begin(), graph.values.end(),
                                    [&](const ir::Value& value) { return value.name == wanted; });
    if (place == graph.values.end())
      return fail(ErrorCode::kUsage, "--pin '{}': the graph has no value of that name", wanted);
    if (!ir::is_persistent(place->kind))
      out.emplace_back(static_cast<std::size_t>(place - graph.values.begin()));
  }
  return out;
}

Result<schedule::GraphWorkload> workload_of(const ir::Graph& graph, const PlanOptions& options,
                                            const Mapping& mapping) {
  schedule::GraphWorkloadOptions how;
  how.kernels = options.kernels;
  how.alignment = options.alignment;
  how.seconds = options.seconds;
  how.in_place = mapping.in_place;
  how.join = mapping.join;
  if (encodes(options)) how.codecs = options.codecs;
  how.lossy = options.lossy;
  PLIMSOLL_TRY(how.pinned, values_to_pin(graph, options.pinned));
  return schedule::make_graph_workload(graph, how);
}

Result<Workloads> make_workloads(const ir::Graph& graph, std::optional<ir::Graph> masked,
                                 const PlanOptions& options) {
  Workloads out;
  out.graph = &graph;
  PLIMSOLL_TRY(out.apart, workload_of(graph, options, {.in_place = false}));
  PLIMSOLL_TRY(out.mapped, workload_of(graph, options, {.in_place = options.in_place}));
  out.masked_graph = std::move(masked);
  if (out.masked_graph) {
    PLIMSOLL_TRY(out.masked,
                 workload_of(*out.masked_graph, options, {.in_place = options.in_place}));
  }
  return out;
}

}  // namespace plimsoll::plan
