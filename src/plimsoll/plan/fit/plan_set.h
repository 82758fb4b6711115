// One plan for a range of sizes, or for all of several: --sizes batch=1..8,seq=16..64.
//
// A plan for the largest size also serves every smaller one at the same offsets: each buffer of a
// smaller size lies inside the place of its larger sister, and lifetimes are the same because the
// steps are. One exception must be planned for: kernel scratch is not monotone in the batch, so
// each step is given the most that any member of the plan set wants. So a program that changes its
// batch size keeps its arena and its addresses, and nobody plans again.
//
// A member whose steps differ (at batch 1 a slice may become a view, a shorter recurrence has fewer
// steps) takes the places of the largest where they are free (plan/near_places.h), with weights and
// states where they are; or, where that does not go, gets a plan of its own. Each says which.
// In-place offers are taken only where every member with the same steps has them.
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

// All combinations of the sizes of one or several options; those of the last one run fastest.
struct SizeGrid {
  SizeGrid() = default;
  SizeGrid(std::string option, std::int64_t low, std::int64_t high)
      : ranges{{std::move(option), low, high}} {}
  explicit SizeGrid(std::vector<SizeRange> of) : ranges(std::move(of)) {}

  std::vector<SizeRange> ranges;

  std::int64_t members() const;
  std::vector<std::int64_t> at(std::int64_t member) const;  // by range
  std::vector<std::int64_t> largest() const { return at(members() - 1); }
  std::string options() const;  // "batch", "batch,seq"
};

// "batch=1..64", "batch=1..8,seq=16..32"
Result<SizeGrid> parse_sizes(std::string_view text);

// The graph at one size of each option, as a workload.
struct SizedWorkload {
  std::vector<std::int64_t> sizes;
  ir::Graph graph;
  schedule::GraphWorkload mapped;
};

// Where a member's buffers lie: at the offsets of the largest; there where they are free, its steps
// being others; or packed by itself.
enum class Places : std::uint8_t { kShared, kNear, kOwn };
std::string_view name(Places places);  // "shared", "near", "own"

struct PlanSetMember {
  std::vector<std::int64_t> sizes;  // by option
  Plan plan;
  Places places = Places::kShared;
  bool shared() const { return places == Places::kShared; }
};

// Smallest first, both; the last one is the plan whose offsets the others share.
Result<std::vector<PlanSetMember>> make_plan_set(std::vector<SizedWorkload> sizes,
                                                 const PlanOptions& options);

}  // namespace plimsoll::plan
