// Exact search for small problems with any rule: who lies above whom.
//
// For every pair of bodies pair_rules.h knows which differences of places are forbidden; what is
// left are a few ranges ("b above a", "a above b", or between a's hooks). Once a range is chosen
// for every pair that matters, the lowest places follow by a monotone fixpoint: x_b >= x_a + d,
// lifted to alignment and slab. So the search keeps the least fixpoint of the choices made so far,
// looks for a pair that it violates, and branches on that pair's ranges; if no pair is violated,
// the fixpoint is a packing. Highest places run down from the capacity in the same way and cut
// ranges off; the pair with the fewest ranges left is branched on first.
//
// Complete for everything a Problem can say, which makes it the referee for the faster engines;
// useful up to some tens of bodies. O(n^2) per node.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/pack/budget.h"
#include "plimsoll/pack/exact/point_cover.h"
#include "plimsoll/pack/model/bodies.h"

namespace plimsoll::pack {

inline constexpr std::size_t kOrderingSearchBodies = 64;

// Is there a packing within `capacity` bytes? On kFound `places` hold it.
CoverResult search_orderings(const BodyModel& model, std::int64_t capacity, Budget& budget,
                             std::vector<std::int64_t>& places);

}  // namespace plimsoll::pack
