// Which steps a step of several streams names in its `waits`, when it is known which it must follow
// (step_order.h): those that its stream does not know to be done already.
//
//   stream 0   a ───────▶ c ──────▶ e      e follows a, b and d and names d alone: its own stream
//   stream 1        b ─x─▶ d ──┘           knows a, and d knows b
//
// A step knows of those before it on its stream, of those that it names, and of what they knew.
// That is kept as how many steps of each stream are done for certain when it begins.
#pragma once

#include <cstdint>
#include <vector>

#include "plimsoll/plan/plan.h"

namespace plimsoll::plan {

using StreamCounts = std::vector<std::int64_t>;  // steps known to be done, by stream

struct KnownSteps {
  std::vector<StreamCounts> known;     // by step, when it begins
  std::vector<std::int64_t> position;  // by step: its number on its stream, from 1
  StreamCounts count;                  // steps in all
};

// Sets the waits of all steps, each of which follows those that `before` has for it.
KnownSteps set_waits(Plan& plan, std::vector<std::vector<std::size_t>> before, std::size_t streams);

// For a plan whose places are decided: a step waits for those that made what it reads, and for
// those that use the bytes that it takes over, be it a copy that is still on its way out. So nobody
// else stops for that copy. Sets the predicted time too. Nothing changes on a single stream.
void wait_for_places(Plan& plan);

}  // namespace plimsoll::plan
