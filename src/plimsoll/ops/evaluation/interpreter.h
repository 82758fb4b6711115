// Runs a whole graph with the reference evaluations: slow, in double precision, obviously right.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "plimsoll/ops/registry.h"

namespace plimsoll::ops {

// One array per value of the graph that is known.
using Environment = std::vector<std::optional<Array>>;

// Computes one node from arrays for its inputs (null for absent ones).
std::vector<Array> evaluate(const ir::Graph& graph, const ir::Node& node,
                            std::vector<const Array*> inputs);

// Computes every value. `sources` gives inputs, weights and state by name (constants come from the
// graph); a missing one or one of another type is an error that names it.
Result<Environment> interpret(const ir::Graph& graph,
                              const std::unordered_map<std::string, Array>& sources);

}  // namespace plimsoll::ops
