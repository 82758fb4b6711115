// Two-ended arenas at any size: two skylines that face each other.
//
// Boxes of the front (and those that do not care) are packed from the bottom, boxes of the back
// from the top, each by its own skyline pass. The arena must be as high as the worst moment of both
// stacks together, rounded up so that mirrored places keep their alignment. Sizes of back boxes are
// rounded up to their modulus for the mirror. Nothing when a back box is fixed or under slabs:
// places in the mirror are not known before the height is, and the greedy orders take over.
#pragma once

#include <optional>
#include <vector>

#include "plimsoll/pack/heuristics/order.h"
#include "plimsoll/pack/model/bodies.h"

namespace plimsoll::pack {

std::optional<std::vector<std::int64_t>> place_two_ended(const BodyModel& boxed, Order order,
                                                         bool guided);

}  // namespace plimsoll::pack
