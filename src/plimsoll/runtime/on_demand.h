// The strategy that decides nothing ahead: one operator at a time (row D1).
//
// Before an operator runs, its results and scratch are taken from a pool; when a value's last
// reader has run, its liveness counter reaches zero and its memory goes back. Only updates are in
// place. Simple, and the yardstick for everything planned.
#pragma once

#include "plimsoll/runtime/executor.h"

namespace plimsoll::runtime {

Result<std::unique_ptr<Executor>> make_on_demand(ir::Graph graph, const ExecutorOptions& options);

}  // namespace plimsoll::runtime
