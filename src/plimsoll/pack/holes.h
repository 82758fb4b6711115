// Holes: space below the skyline that a pass gave up, filled with small bodies afterwards.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/pack/bodies.h"
#include "plimsoll/pack/item_index.h"

namespace plimsoll::pack {

struct Hole {
  Interval<std::int32_t> sections;
  Interval<std::int64_t> room;  // units
};

// Removes from `items` what found a place.
void fill_holes(const BodyModel& model, std::vector<Hole> holes, ItemIndex& items,
                std::vector<std::int64_t>& places);

}  // namespace plimsoll::pack
