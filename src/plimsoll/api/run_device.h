// Which devices can run, as opposed to be planned for.
//
// `plan --device h200` plans with the times and the memory of a machine that is not here; running
// is another matter. A device that cannot run is an error, never a silent change to one that can.
#pragma once

#include <string>

#include "plimsoll/base/result.h"

namespace plimsoll::api {

// kDevice (exit code 6) unless steps can run on it here. `cpu`, `measured` (this machine, timed
// first) and profiles of a CPU run on the CPU.
Status require_runnable(const std::string& device);

// What the plan of a model says it was made for: "cpu", or the profile of another machine.
std::string planned_device(const std::string& device);

}  // namespace plimsoll::api
