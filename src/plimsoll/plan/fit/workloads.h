// What a planner works on: the graph as workloads (schedule/workload/graph_workload.h).
//
//   apart    nothing in place: where the table of savings begins
//   mapped   results in place where they may: what is planned when everything is kept
//   masked   of another graph, in which masks of one bit stand where a gradient needs no more:
//            what is fitted to a budget when activations may be encoded
//
// The rewrite that makes the masks (rewrite/keep_masks.h) is the caller's: planning rewrites
// nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plimsoll/base/clock.h"
#include "plimsoll/plan/fit/plan_options.h"
#include "plimsoll/schedule/workload/graph_workload.h"

namespace plimsoll::plan {

// Whether activations may be encoded: then a graph with masks is wanted.
bool encodes(const PlanOptions& options);

// The values with these names, sources that stay anyway left out; an unknown name is an error.
Result<std::vector<ValueId>> values_to_pin(const ir::Graph& graph,
                                           const std::vector<std::string>& names);

struct Mapping {
  bool in_place = true;
  bool join = false;
};
Result<schedule::GraphWorkload> workload_of(const ir::Graph& graph, const PlanOptions& options,
                                            const Mapping& mapping);

struct Workloads {
  const ir::Graph* graph = nullptr;
  schedule::GraphWorkload apart;
  schedule::GraphWorkload mapped;
  std::optional<ir::Graph> masked_graph;
  schedule::GraphWorkload masked;
  Stopwatch watch;  // since planning began: deadlines count from here

  // What is fitted to a budget.
  const ir::Graph& fitted_graph() const { return masked_graph ? *masked_graph : *graph; }
  const schedule::GraphWorkload& fitted() const { return masked_graph ? masked : mapped; }
};

// `graph` must outlive them.
Result<Workloads> make_workloads(const ir::Graph& graph, std::optional<ir::Graph> masked,
                                 const PlanOptions& options);

}  // namespace plimsoll::plan
