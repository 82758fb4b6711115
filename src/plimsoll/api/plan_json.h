// The summary of a plan as the JSON object that `plimsoll plan --json` prints.
#pragma once

#include <string>

#include "plimsoll/api/planning.h"

namespace plimsoll::api {

std::string to_json(const PlannedGraph& planned);

}  // namespace plimsoll::api
