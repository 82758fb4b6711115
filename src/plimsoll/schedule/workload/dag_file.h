// A weighted DAG as a JSON file: for people who bring their own graph. docs/formats/dag.md has it
// all.
//
//   {"nodes": [{"name": "a", "seconds": 1e-3, "bytes": 4096, "scratch": 0, "inputs": [],
//               "recompute": true, "keep": false}, ...],
//    "order": ["a", ...]}
//
// Inputs and the order name nodes, by name or by place. Without an order the file's own is taken if
// it can be run, else a topological one. The file is hostile until read: sizes, depth, names,
// numbers and cycles are checked, and memory is linear in its length.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/schedule/schedule.h"
#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::schedule {

Result<Workload> read_dag(std::string_view text);

// {"schema":1,"steps":[{"compute":NAME} | {"drop":NAME} | {"send_out":NAME} | ...]}: the list of
// actions by the names of tasks and values. A recompute is a {"compute"} of a name seen before;
// only drops of device memory are listed, an encoded form's as {"drop_encoded":NAME}.
std::string schedule_to_json(const Workload& workload, const Schedule& schedule);

}  // namespace plimsoll::schedule
