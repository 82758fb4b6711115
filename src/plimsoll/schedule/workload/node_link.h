// Graphs in networkx' node-link form, made into the DAG form of dag_file.h.
//
//   {"directed": true, "multigraph": false, "graph": {"order": [0, 1]},
//    "nodes": [{"id": 0, "bytes": 4096, "cost": 3}, {"id": 1, "bytes": 16, "cost": 1}],
//    "links": [{"source": 0, "target": 1}]}             networkx 3.4 and later write `edges`
//
// A size and a cost may be spelt as other programs spell them (docs/formats/dag.md has the table),
// and every node must have both: a graph whose sizes stand under a name that nobody reads would
// plan to nothing and be called optimal. For the same reason a number under an unknown name is an
// error, at a node and at an edge; a text is a label and is left alone. Parallel edges are one.
//
// A node is called by its `name` where all of those are texts and differ, else by its id.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "plimsoll/base/result.h"

namespace plimsoll::schedule {

// Whether the object has edges beside its nodes.
bool is_node_link(const nlohmann::json& file);

// An object as read_dag() takes it. Linear in the file (n log n in its keys).
Result<nlohmann::json> dag_of_node_link(nlohmann::json file);

}  // namespace plimsoll::schedule
