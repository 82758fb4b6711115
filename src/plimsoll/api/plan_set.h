// One plan for a range of sizes of a MODEL: --sizes batch=1..64, or batch=1..8,seq=16..32
// (plan/fit/plan_set.h).
//
// The members are one graph with a symbol for each size (symbolic_model.h), bound to each. A model
// that has no such graph is built size by size. Cost: a handful of graphs, one table of kernel
// facts per member, one packing for all.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/plan/fit/plan_set.h"

namespace plimsoll::api {

using plan::parse_sizes;
using plan::PlanSetMember;
using plan::SizeGrid;

// The same request at one of the sizes of each option.
ModelRequest at_sizes(ModelRequest request, const SizeGrid& grid,
                      const std::vector<std::int64_t>& sizes);

// Smallest first; the last one is the plan whose offsets the others share.
Result<std::vector<PlanSetMember>> plan_set_for(const ModelRequest& request,
                                                const std::string& device,
                                                const PlanOptions& options, const SizeGrid& grid);

// The plan in a file; of a plan set, the one for --batch or --seq.
Result<plan::Plan> read_plan(const std::string& file, const model::ModelOptions& sizes);

}  // namespace plimsoll::api
