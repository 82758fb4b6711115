// Where a trace departs from the plan that was meant to run: the two are compared block by block.
//
// The trace says which bytes of the arena kernels were handed and when (call_trace.h), the plan
// where each value should have been. Every block of the trace must be a place that the plan gives
// to the value it is named after, and no more bytes may be alive at once than the arena has. Empty:
// the run followed the plan.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/plan/plan.h"
#include "plimsoll/trace/event.h"

namespace plimsoll::runtime {

// Messages, one for each departure; at most a hundred.
std::vector<std::string> trace_departures(const plan::Plan& plan, const trace::Trace& trace);

}  // namespace plimsoll::runtime
