// Fixed bodies that cannot both be where they are fixed.
//
// Engines take fixed bodies as obstacles and trust them; so a clash among them is found first, and
// it is the whole explanation of an infeasible problem. Plain models are swept over time, n log n;
// others are asked pair by pair.
#pragma once

#include <vector>

#include "plimsoll/pack/model/bodies.h"

namespace plimsoll::pack {

// Two buffers that clash, or nothing.
std::vector<BufferId> find_fixed_clash(const BodyModel& model);

}  // namespace plimsoll::pack
