// A trace as the Chrome / Perfetto viewers read it (chrome://tracing, ui.perfetto.dev).
//
// Operators and phases become slices on one track per stream; allocations and frees become a
// counter "live bytes" per device, and one async slice per named block from its allocation to its
// free. One JSON object, written in one pass; memory is the text plus what is alive.
#pragma once

#include <string>

#include "plimsoll/trace/event.h"

namespace plimsoll::trace {

std::string format_chrome_trace(const Trace& trace);

}  // namespace plimsoll::trace
