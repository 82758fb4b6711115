// The classic orders as named methods: one body after the other into the gaps that are left.
//
// Bodies come in a fixed order (by size, by lifetime, by area, by birth, as listed); each goes to
// the lowest gap that takes it (first fit) or to the smallest (best fit). This is what production
// planners ship, and the baseline to beat; here it knows every rule of a Problem, because
// pair_rules.h does. Fixed bodies come first, back bodies of a two-ended arena last.
//
// Cost: O(log n + placed bodies alive at the same time) per body. When the budget ends, the bodies
// still to come go on top of all that is alive with them, in O(log n) each: high, but an answer.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "plimsoll/pack/budget.h"
#include "plimsoll/pack/model/bodies.h"

namespace plimsoll::pack {

enum class GreedyOrder : std::uint8_t { kSize, kLifetime, kArea, kBirth, kGiven, kHint };
enum class Fit : std::uint8_t { kFirst, kBest };

std::vector<std::uint32_t> greedy_order(const BodyModel& model, GreedyOrder order);

// Places of all bodies taken in `order`; nothing when fixed bodies clash, or when a body has no
// place (slabs; a fixed back body that ought to lie above what is stacked at the end of the
// budget).
std::optional<std::vector<std::int64_t>> place_greedily(const BodyModel& model,
                                                        std::span<const std::uint32_t> order,
                                                        Fit fit, Budget& budget);

}  // namespace plimsoll::pack
