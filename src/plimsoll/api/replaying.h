// What `plimsoll replay` and `plimsoll convert` do, for the command line: trace/replay_file.h.
#pragma once

#include "plimsoll/trace/replay_file.h"

namespace plimsoll::api {

using trace::convert_trace;
using trace::replay_trace;
using trace::ReplayReport;
using trace::ReplayRequest;
using trace::ReplayRow;
using trace::to_json;

}  // namespace plimsoll::api
