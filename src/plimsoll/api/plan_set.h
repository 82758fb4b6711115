// One plan for a range of sizes of a MODEL: --sizes batch=1..64 (plan/fit/plan_set.h).
//
// The members are one graph with a symbol for the size (symbolic_model.h), bound to each. A model
// that has no such graph is built size by size. Cost: three graphs, one table of kernel facts per
// size, one packing for all.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/api/pipeline.h"
#include "plimsoll/plan/fit/plan_set.h"

namespace plimsoll::api {

using plan::parse_sizes;
using plan::PlanSetMember;
using plan::SizeRange;

// The same request at one of the sizes.
ModelRequest at_size(ModelRequest request, const SizeRange& sizes, std::int64_t size);

// Smallest first; the last one is the plan whose offsets the others share.
Result<std::vector<PlanSetMember>> plan_set_for(const ModelRequest& request,
                                                const std::string& device,
                                                const PlanOptions& options, const SizeRange& sizes);

// The plan in a file; of a plan set, the one for --batch or --seq.
Result<plan::Plan> read_plan(const std::string& file, const model::ModelOptions& sizes);

}  // namespace plimsoll::api
