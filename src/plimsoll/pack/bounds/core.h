// Infeasible cores: few buffers that alone explain why a capacity is too small.
//
// Starts from the buffers the proof used (a section that is too full, or a part that search has
// refuted) and drops one after the other as long as the rest is still refuted by the bound or by a
// short search. Every core returned is itself infeasible; it is minimal when the budget lasts.
#pragma once

#include <span>
#include <vector>

#include "plimsoll/pack/budget.h"
#include "plimsoll/pack/model/bodies.h"

namespace plimsoll::pack {

std::vector<BufferId> shrink_core(const BodyModel& model, std::span<const BufferId> witnesses,
                                  std::int64_t capacity, Budget& budget);

// The model with only these bodies; sections and units stay.
BodyModel subset(const BodyModel& model, std::span<const std::uint32_t> bodies);

}  // namespace plimsoll::pack
