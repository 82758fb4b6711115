// What must hold of a plan before it can be replayed (check_plan.h): the graph is right, every id
// names something, every buffer lies inside its arena at the alignment, groups lie one behind the
// other, steps have the slots that their nodes have, waits point back, the budget is kept.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/plan/plan.h"

namespace plimsoll::plan {

inline constexpr int kFollowedStreams = 8;         // more than that are refused
inline constexpr std::int64_t kAlignment = 64;     // of every buffer and value
inline constexpr std::size_t kMostProblems = 100;  // that are named

// What is wrong, up to a hundred.
std::vector<std::string> check_structure(const Plan& plan);

}  // namespace plimsoll::plan
