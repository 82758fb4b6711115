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

#include <cstddef>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "plimsoll/base/json.h"
#include "plimsoll/base/result.h"
#include "plimsoll/schedule/workload/workload.h"

namespace plimsoll::schedule {

inline constexpr JsonLimits kDagLimits{
    .bytes = std::size_t{512} << 20, .depth = 16, .values = 32'000'000};

// Also networkx' node-link form (node_link.h).
Result<Workload> read_dag(std::string_view text);
// The same of a text that is parsed already.
Result<Workload> read_dag_tree(const nlohmann::json& file);

// The array `nodes` that reads back as this workload, whose tasks make one value each, in its
// order. A unit that was taken out of the costs (cost_unit.h) is put back.
nlohmann::json dag_nodes(const Workload& workload, double cost_unit = 1);

}  // namespace plimsoll::schedule
