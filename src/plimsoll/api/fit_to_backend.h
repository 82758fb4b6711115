// A graph as the kernels that will run it want it.
#pragma once

#include "plimsoll/ir/graph.h"
#include "plimsoll/kernels/backend/backend.h"
#include "plimsoll/plan/fit/plan_options.h"

namespace plimsoll::api {

// Rewritten as the backend says (kernels/backend/backend.h), with layouts chosen.
Result<ir::Graph> fit_to_backend(ir::Graph graph, const kernels::Backend& backend);

// The graph with physical layouts chosen for the backend's kernels, conversions as visible nodes;
// or for those of the CPU with so many threads.
Result<ir::Graph> assign_layouts(const ir::Graph& graph, const kernels::Backend& backend);
Result<ir::Graph> assign_layouts(const ir::Graph& graph, int threads);

// What a graph takes in the memory of the backend when nothing is computed twice, quickly.
Result<Bytes> quick_arena(const ir::Graph& graph, kernels::Backend& backend, plan::PlanOptions how);

}  // namespace plimsoll::api
