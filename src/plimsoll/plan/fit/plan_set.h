// One plan for a range of sizes: --sizes batch=1..64.
//
// A plan for the largest size also serves every smaller one at the same offsets: each buffer of a
// smaller size lies inside the place of its larger sister, and lifetimes are the same because the
// steps are. One exception must be planned for: kernel scratch is not monotone in the batch, so
// each step is given the most that any member of the plan set wants. So a program that changes its
// batch size keeps its arena and its addresses, and nobody plans again.
//
// A member whose steps differ (at batch 1 a slice may become a view) gets a plan of its own, which
// says so. In-place offers are taken only where every member has them.
//
// Every member's plan has passed the verifier. Cost: one packing for all.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/plan/fit/plan_options.h"
#include "plimsoll/schedule/workload/graph_workload.h"

namespace plimsoll::plan {

struct SizeRange {
  std::string option;  // batch or seq
  std::int64_t low = 1;
  std::int64_t high = 1;
};

// "batch=1..64"
Result<SizeRange> parse_sizes(std::string_view text);

// The graph at one size, as a workload.
struct SizedWorkload {
  std::int64_t size = 0;
  ir::Graph graph;
  schedule::GraphWorkload mapped;
};

struct PlanSetMember {
  std::int64_t size = 0;
  Plan plan;
  bool shared = true;  // false: its steps differ, so it has offsets of its own
};

// Smallest first, both; the last one is the plan whose offsets the others share.
Result<std::vector<PlanSetMember>> make_plan_set(std::vector<SizedWorkload> sizes,
                                                 const PlanOptions& options);

}  // namespace plimsoll::plan
