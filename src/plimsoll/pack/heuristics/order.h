// Priorities: in which order a skyline takes the bodies.
//
// A pass picks the body of highest priority among those that fit (skyline.h). An octave of area is
// worth 1000, whatever the order, so that rules and noise can be added to it. Logarithms are those
// of stable_log.h: the same order on every machine.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/pack/model/bodies.h"

namespace plimsoll::pack {

enum class Order : std::uint8_t {
  kWidth,       // longest first
  kArea,        // size x lifetime
  kTotalWidth,  // the highest load it sees, then lifetime
  kTotalArea,   // the highest load it sees, then area
  kSize,        // largest first
  kAreaWidth,   // size x lifetime^2
  kLongArea,    // size x lifetime^4
};
const char* name(Order order);

// Per section, in units.
std::vector<std::int64_t> loads(const BodyModel& model);

// Per body, highest first.
std::vector<float> priorities(const BodyModel& model, Order order);

// By size x lifetime^width_weight: 0 is size alone, 1 area; the larger, the more lifetime counts.
std::vector<float> weighted_priorities(const BodyModel& model, double width_weight);

}  // namespace plimsoll::pack
