// Peaks first: large problems in two steps, the few moments that decide the height before all others.
//
// A skyline pass treats every moment alike, and on large problems without structure wastes bytes at the
// highest peak, because bodies of quieter moments take the floor that peak bodies need. So pack first, with
// nothing else in the way, the bodies that see a load near the bound; then pack the others around them as
// obstacles (skyline.h). Quiet moments have the room to do that.
//
// How much load makes a peak is a matter of luck: three shares of the bound are tried. A share whose
// peaks alone come out no lower than the best packing so far is given up before its second step.
//
//   load            .--.   share 0.93          step 1: bodies that touch | |
//            ___.--'|  |'-.____                step 2: the rest, around them
//
// Rejected: windows that are repacked between frozen neighbours (obstacles on both sides); letting quiet moments waste space early; orders that prefer peak bodies in one pass.
//
// Limits: among a million random buffers the peaks come out close to the bound, but around them some of
// the rest does not find its place, and the whole is no lower than a plain pass.
//
// Cost: some passes over the peaks (a few percent of the bodies) and one over everything per share.
// Plain models; one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/pack/bodies.h"
#include "plimsoll/pack/budget.h"

namespace plimsoll::pack {

struct PeaksFirstOptions {
  std::int64_t bound = 0;   // bytes, what the load is compared with
  std::int64_t target = 0;  // bytes, where to stop
  bool guided = true;
};

// Improves `places` (a packing, or empty) as far as the budget goes; true when it did.
bool pack_peaks_first(const BodyModel& model, const PeaksFirstOptions& options, Budget& budget,
                      std::vector<std::int64_t>& places);

}  // namespace plimsoll::pack
