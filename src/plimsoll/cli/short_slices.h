// Threads that meet at the end of every parallel loop should run soon rather than long.
//
// The scheduler gives whoever runs a slice of some milliseconds before it looks for others. A
// thread of ours that slept through a wait of microseconds and wakes on a core where a neighbour
// runs, however low its priority, waits for the rest of that slice, and with it all threads of the
// loop. A thread that asks for slices of a tenth of a millisecond is put first when it wakes; its
// share of the core stays the same. Linux takes the wish since 6.12 and ignores it before.
#pragma once

namespace plimsoll::cli {

// For this thread and all that it will start.
void ask_for_short_slices();
// The usual ones again: for programs that are not ours.
void ask_for_usual_slices();

}  // namespace plimsoll::cli
