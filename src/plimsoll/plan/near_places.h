// Places for the buffers of one plan taken from another plan of other steps, without a packing.
//
// An unrolled recurrence of 20 steps has, but for the sums at its ends, the buffers of 20 of the 64
// steps of a longer one, and they live as long beside each other. So each buffer is tried where the
// buffer of its name lies in the other plan (of several with one name, in order): what lives from
// step to step first, which must lie there, then the largest. Where another buffer is in the way,
// it goes to the lowest gap below the other plan's top. Where that fails, buffers look for gaps in
// turn, and then without regard to names.
//
//   other   w ████████  a1 ██  a2 ██  a3 ██        3 steps
//   this    w ████████  a1 ██  a2 ██               2 steps, and a2 where it was
//
// Cost: quadratic in the buffers, with a small constant; nothing is searched. Nothing is promised
// about gaps: a plan that does not find its places is packed like any other.
#pragma once

#include <vector>

#include "plimsoll/plan/plan.h"

namespace plimsoll::plan {

// False where a buffer found no place; then offsets are of no use. Only for buffers of the device.
bool take_near_places(std::vector<PlanBuffer>& buffers, const Plan& other, Bytes alignment);

}  // namespace plimsoll::plan
