// Holes: space below the skyline that a pass gave up, filled with small bodies afterwards.
//
// Every time a skyline rises without a body it leaves a rectangle of sections x room. Holes are
// taken narrowest first, for only short bodies fit there and the long ones can wait for wider
// holes. The body of highest priority that fits goes to the bottom; what is left are three holes,
// taken next:
//
//      +-----------------+
//      |       above     |   the full width, so that long bodies still fit
//      +---+--------+----+
//      |   |  body  |    |   beside it, as high as the body
//      +---+--------+----+
//
// Cost O((holes + bodies) log n).
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/pack/heuristics/item_index.h"
#include "plimsoll/pack/model/bodies.h"

namespace plimsoll::pack {

struct Hole {
  Interval<std::int32_t> sections;
  Interval<std::int64_t> room;  // units
};

// Removes from `items` what found a place.
void fill_holes(const BodyModel& model, std::vector<Hole> holes, ItemIndex& items,
                std::vector<std::int64_t>& places);

}  // namespace plimsoll::pack
