// One plan for a range of sizes: --sizes batch=1..64.
//
// A plan for the largest size also serves every smaller one at the same offsets: each buffer of a
// smaller size lies inside the place of its larger sister, and lifetimes are the same because the
// steps are. One exception must be planned for: kernel scratch is not monotone in the batch, so
// each step is given the most that any member of the plan set wants. So a program that changes its
// batch size keeps its arena and its addresses, and nobody plans again.
//
// The members are one graph with a symbol for the size (symbolic_model.h), bound to each. A model
// that has no such graph is built size by size. A member whose steps differ (at batch 1 a slice may
// become a view) gets a plan of its own, which says so. In-place offers are taken only where every
// member has them.
//
// Every member's plan has passed the checker. Cost: three graphs, one table of kernel facts per
// size, one packing for all.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plimsoll/api/pipeline.h"

namespace plimsoll::api {

struct SizeRange {
  std::string option;  // batch or seq
  std::int64_t low = 1;
  std::int64_t high = 1;
};

// "batch=1..64"
Result<SizeRange> parse_sizes(std::string_view text);

// The same request at one of the sizes.
ModelRequest at_size(ModelRequest request, const SizeRange& sizes, std::int64_t size);

struct PlanSetMember {
  std::int64_t size = 0;
  plan::Plan plan;
  bool shared = true;  // false: its steps differ, so it has offsets of its own
};

// Smallest first; the last one is the plan whose offsets the others share.
Result<std::vector<PlanSetMember>> plan_set_for(const ModelRequest& request,
                                                const std::string& device,
                                                const PlanOptions& options, const SizeRange& sizes);

}  // namespace plimsoll::api
