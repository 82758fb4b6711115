// Lower bounds: heights no packing can go below.
//
// The live bytes of a section are what its bodies hold together; their peak is a bound, and on most
// real graphs the optimum. Sizes are in units rounded to what all offsets are multiples of, less
// the part of one last unit that is not used, so common alignments tighten the bound. Fixed bodies
// and bodies that alignment lifts off the ground bound by their own top.
//
// Under clocks the heaviest set of buffers that all meet is that peak (antichain.h). Where it takes
// too much work, project every buffer onto one stream: [ready, released) there. Two projections
// that overlap prove that the buffers meet, so the peak of each projection is a bound.
#pragma once

#include <cstdint>

#include "plimsoll/pack/model/bodies.h"

namespace plimsoll::pack {

struct Bound {
  std::int64_t bytes = 0;
  std::vector<BufferId> witnesses;  // buffers that reach it together
};

Bound lower_bound(const BodyModel& model);

}  // namespace plimsoll::pack
