// `plimsoll plan --dag FILE`: options and printing for a user's own graph. cli/plan.cpp calls it.
#pragma once

#include "plimsoll/api/plan_dag.h"
#include "plimsoll/base/result.h"
#include "plimsoll/cli/command.h"

namespace plimsoll::cli {

Status plan_dag(const api::PlanDagRequest& request, bool json, Command& command);

}  // namespace plimsoll::cli
