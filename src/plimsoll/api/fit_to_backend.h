// A graph as the kernels that will run it want it.
#pragma once

#include <vector>

#include "plimsoll/ir/graph.h"
#include "plimsoll/kernels/backend/backend.h"
#include "plimsoll/plan/fit/plan_options.h"
#include "plimsoll/schedule/device_profile.h"

namespace plimsoll::api {

// Rewritten as the backend says (kernels/backend/backend.h), with layouts chosen: by what operators
// take on the device of this profile where that makes the whole graph faster, else by the rule of
// rewrite/layouts.h.
Result<ir::Graph> fit_to_backend(ir::Graph graph, const kernels::Backend& backend,
                                 const schedule::DeviceProfile* prices = nullptr);
// The other forms of what layouts are chosen for: with everything row-major, and with images of few
// channels turned too. Whoever measures their operators can compare.
Result<std::vector<ir::Graph>> fit_to_other_layouts(ir::Graph graph,
                                                    const kernels::Backend& backend);

// The graph with physical layouts chosen for the backend's kernels, conversions as visible nodes;
// or for those of the CPU with so many threads.
Result<ir::Graph> assign_layouts(const ir::Graph& graph, const kernels::Backend& backend);
Result<ir::Graph> assign_layouts(const ir::Graph& graph, int threads);

// What a graph takes in the memory of the backend when nothing is computed twice, quickly.
Result<Bytes> quick_arena(const ir::Graph& graph, kernels::Backend& backend, plan::PlanOptions how);

}  // namespace plimsoll::api
