// Which buffer lies in which memory, and when: three ways to decide it.
//
//   home     everything in device memory
//   greedy   the named baseline, in the manner of XLA's memory-space assignment: along the steps,
//            what a step makes or needs gets a place in the fastest memory that can hold it; what
//            it needs is prefetched as late as lets the copy end in time, and left in device memory
//            where there is no time for the copy; where room is short, the buffer whose next use is
//            furthest away (the longest idle) leaves, unless it is needed sooner than what came
//   search   simulated annealing over levels and windows from both of the others, by the time of
//            the whole step (placement.h); never slower than they are
//
// Counted work; deterministic in the seed.
#pragma once

#include <cstdint>
#include <string_view>

#include "plimsoll/plan/memories/placement.h"

namespace plimsoll::plan {

enum class PlacementChoice : std::uint8_t { kHome, kGreedy, kSearch };
std::string_view name(PlacementChoice choice);

Placement greedy_placement(const PlacementModel& model, const std::vector<std::int64_t>& capacity);

// From `start`; fewer moves on large graphs.
Placement search_placement(const PlacementModel& model, const std::vector<std::int64_t>& capacity,
                           Placement start, std::uint64_t seed, std::int64_t most_moves);

}  // namespace plimsoll::plan
