// The unit that costs are counted in, taken out before the search and put back after it.
//
// People weigh the nodes of a DAG by what they have: seconds, microseconds, floating-point
// operations. A plan does not depend on the unit, but the search is not blind to it: it compares
// with small absolute tolerances, multiplies costs by bytes, and hands them to a solver of linear
// programs that likes numbers near one. So costs far from what seconds are (2^-30 to 2^30 in all)
// are scaled by a power of two, which is exact, and the same power scales the answers back:
//
//   costs 1.6e12, 0.8e12        unit 2^42 the search sees 0.36, 0.18 answers times 2^42
//
// The rates of copies are scaled with them, so that a second of copying weighs what it weighed.
#pragma once

#include "plimsoll/schedule/device_profile.h"
#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::schedule {

// Scales the costs and rates, and returns what one unit is worth in the old one: 1 where nothing
// was done. The workload has been verified.
double take_out_unit(Workload& workload, CopyRates& copies);

}  // namespace plimsoll::schedule
