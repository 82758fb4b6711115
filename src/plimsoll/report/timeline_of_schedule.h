// The timeline of a DAG's schedule (schedule/schedule_file.h), and what is alive in it.
//
// A step of the file is a time step. A schedule has no offsets: they are the caller's (a packing of
// what is held), and only the drawing needs them. Prices as in why_alive.h, from what the graph
// says of its nodes: recomputing walks back to values that are on the device when the next reader
// runs, swapping asks whether the copies fit beside the work in between, and encodings are those
// that the file offers.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "plimsoll/report/timeline.h"
#include "plimsoll/report/why_alive.h"
#include "plimsoll/schedule/replay_schedule.h"

namespace plimsoll::report {

// `places`: an offset for each of replay.held, host copies included (theirs are not drawn on the
// device). The arena is the height of those on the device.
Timeline timeline_of(const schedule::ScheduleFile& file, const schedule::ScheduleReplay& replay,
                     std::span<const Offset> places, std::string title);

// Everything on the device at the time step, largest first, with prices; for a timeline made of
// these two.
std::vector<AliveRow> alive_at(const Timeline& timeline, Step time_step,
                               const schedule::ScheduleFile& file,
                               const schedule::ScheduleReplay& replay,
                               const schedule::CopyRates& copies);

}  // namespace plimsoll::report
