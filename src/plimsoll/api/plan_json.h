// The summary of a plan as the JSON object that `plimsoll plan --json` prints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/api/planning.h"

namespace plimsoll::api {

std::string to_json(const PlannedGraph& planned, std::optional<std::int64_t> batch = {});
// A sweep: the first point's keys, and all of them under "points".
std::string to_json(const std::vector<PlannedGraph>& curve);
std::string to_json(const PlanFailure& failure);

}  // namespace plimsoll::api
