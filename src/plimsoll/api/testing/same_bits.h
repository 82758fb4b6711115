// Whole runs whose bits are compared.
#pragma once

#include "plimsoll/runtime/run.h"
#include "plimsoll/runtime/testing/left_behind.h"

namespace plimsoll::api {

using runtime::left_behind;
using runtime::LeftBehind;
using runtime::RunOptions;
using runtime::RunReport;

// Runs on one kernel thread, unless told, and returns what was left; fails like the run itself.
Result<LeftBehind> run_planned_for(const plan::Plan& plan, int steps, bool poison = false,
                                   int threads = 1);
Result<LeftBehind> run_on_demand_for(const ir::Graph& graph, int steps);

}  // namespace plimsoll::api
