// A graph as JSON, for other programs to read. It says what the text form says; reading back is the
// text form's business (one parser to keep safe).
//
//   {"schema": 1, "name": "tiny",
//    "values": [{"id": 0, "name": "x", "kind": "input", "dtype": "fp32", "shape": [2,3], "bytes":
//    24}, ...], "nodes": [{"op": "linear", "inputs": [0,1,null], "outputs": [2], "attributes":
//    {...},
//               "phase": "forward", "layer": "fc"}, ...],
//    "outputs": [2], "updates": [{"source": 1, "next": 9}]}
//
// Optional keys: "layout", "init": {"kind", "a", "b"}, "data" (hexadecimal) of a constant.
#pragma once

#include <nlohmann/json.hpp>

#include "plimsoll/ir/graph.h"

namespace plimsoll::ir {

nlohmann::ordered_json to_json(const Graph& graph);

}  // namespace plimsoll::ir
