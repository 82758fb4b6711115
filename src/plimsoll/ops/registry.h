// All operators, listed explicitly (static registrars vanish when linked from a static library).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "plimsoll/ops/op_definition.h"

namespace plimsoll::ops {

// Sorted by name.
std::span<const OpDefinition> registry();
// Null when there is no such operator.
const OpDefinition* find_definition(std::string_view op);
// For a node of a verified graph.
const OpDefinition& definition_of(const ir::Node& node);
// Its attributes, with the operator's defaults.
AttributeReader attributes_of(const ir::Node& node);

// The node's inputs as its definition's rules want them.
Call call_of(const ir::Graph& graph, const ir::Node& node);
std::vector<TensorType> output_types(const ir::Graph& graph, const ir::Node& node);

// The result types of a node whose inputs are in the graph, after checking operator, arity and
// attributes; the error begins with the operator's name.
Result<std::vector<TensorType>> infer(const ir::Graph& graph, const ir::Node& node);

// ir::verify, and every node agrees with its definition: known operator, arity, attributes,
// inferred types.
// Layouts may differ from the inferred ones; that is the layout pass's business.
Status verify(const ir::Graph& graph);

Cost cost_of(const ir::Graph& graph, const ir::Node& node);

}  // namespace plimsoll::ops
