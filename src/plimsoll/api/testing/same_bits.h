// What a run leaves behind, byte for byte: outputs, and every weight, moment and counter.
//
// Two strategies that started with one seed must leave the same bytes; NaN patterns count as bytes too.
#pragma once

#include <cstddef>
#include <vector>

#include "plimsoll/api/running.h"

namespace plimsoll::api {

using LeftBehind = std::vector<std::vector<std::byte>>;

LeftBehind left_behind(runtime::Executor& executor);

// Runs on one kernel thread, unless told, and returns what was left; fails like the run itself.
Result<LeftBehind> run_planned_for(const plan::Plan& plan, int steps, bool poison = false, int threads = 1);
Result<LeftBehind> run_on_demand_for(const ir::Graph& graph, int steps);

}  // namespace plimsoll::api
