#include "plimsoll/ops/registry.h"

#include <algorithm>
#include <iterator>

#include "plimsoll/ops/definition/definitions.h"

namespace plimsoll::ops {
namespace {

std::vector<OpDefinition> all_definitions() {
  std::vector<OpDefinition> out;
  for (const auto family : {
           binary_definitions,
           matmul_definitions,
           linear_definitions,
           encoded_weight_definitions,
           conv_definitions,
           attention_definitions,
           batch_norm_definitions,
           row_norm_definitions,
           lrn_definitions,
           softmax_definitions,
           loss_definitions,
           add_n_definitions,
           add_relu_definitions,
           pool_definitions,
           update_definitions,
           power_definitions,
           comparison_definitions,
           bitwise_definitions,
           unary_definitions,
           activation_definitions,
           activation_grad_definitions,
           mask_definitions,
           cast_definitions,
           dropout_definitions,
           random_uniform_definitions,
           shaping_definitions,
           depth_to_space_definitions,
           slicing_definitions,
           joining_definitions,
           padding_definitions,
           indexing_definitions,
           indexing_elements_definitions,
           indexing_nd_definitions,
           resize_definitions,
           reduction_definitions,
           running_sum_definitions,
           ranking_definitions,
           collective_definitions,
           shard_definitions,
       }) {
    auto definitions = family();
    std::move(definitions.begin(), definitions.end(), std::back_inserter(out));
  }
  std::sort(out.begin(), out.end(),
            [](const OpDefinition& a, const OpDefinition& b) { return a.name < b.name; });
  const auto twice = std::adjacent_find(
      out.begin(), out.end(),
      [](const OpDefinition& a, const OpDefinition& b) { return a.name == b.name; });
  PLIMSOLL_CHECK(twice == out.end(), "operator '{}' has two definitions", twice->name);
  return out;
}

}  // namespace

std::span<const OpDefinition> registry() {
  static const std::vector<OpDefinition> kDefinitions = all_definitions();
  return kDefinitions;
}

const OpDefinition* find_definition(std::string_view op) {
  const auto definitions = registry();
  const auto place = std::lower_bound(
      definitions.begin(), definitions.end(), op,
      [](const OpDefinition& definition, std::string_view name) { return definition.name < name; });
  return place != definitions.end() && place->name == op ? &*place : nullptr;
}

const OpDefinition& definition_of(const ir::Node& node) {
  const OpDefinition* definition = find_definition(node.op);
  PLIMSOLL_CHECK(definition != nullptr, "operator '{}' has no definition", node.op);
  return *definition;
}

AttributeReader attributes_of(const ir::Node& node) {
  return definition_of(node).read(node.attributes);
}

Call call_of(const ir::Graph& graph, const ir::Node& node) {
  std::vector<const TensorType*> inputs;
  inputs.reserve(node.inputs.size());
  for (const ValueId input : node.inputs)
    inputs.push_back(input.valid() ? &graph.value(input).type : nullptr);
  return Call(std::move(inputs), attributes_of(node));
}

std::vector<TensorType> output_types(const ir::Graph& graph, const ir::Node& node) {
  std::vector<TensorType> out;
  out.reserve(node.outputs.size());
  for (const ValueId output : node.outputs) out.push_back(graph.value(output).type);
  return out;
}

Result<std::vector<TensorType>> infer(const ir::Graph& graph, const ir::Node& node) {
  const OpDefinition* definition = find_definition(node.op);
  if (definition == nullptr) return bad_input("{}: unknown operator", node.op);
  const int count = static_cast<int>(node.inputs.size());
  if (count < definition->inputs.least || count > definition->inputs.most) {
    return bad_input("{}: has {} inputs, expects {}{}", node.op, count, definition->inputs.least,
                     definition->inputs.most == definition->inputs.least ? ""
                     : definition->inputs.most >= kMany
                         ? " or more"
                         : fmt::format(" to {}", definition->inputs.most));
  }
  for (int i = 0; i < definition->inputs.least; ++i) {
    if (!node.inputs[static_cast<std::size_t>(i)].valid())
      return bad_input("{}: input {} is missing", node.op, i);
  }
  if (auto fine = check_attributes(definition->attributes, node.attributes); !fine) {
    return forward(fine, node.op);
  }
  auto types = definition->infer(call_of(graph, node));
  if (!types) return forward(types, node.op);
  for (const TensorType& type : *types) {
    if (!ir::checked_bytes(type))
      return bad_input("{}: the size of its result {} does not fit 64 bits", node.op,
                       ir::to_string(type));
  }
  return types;
}

Status verify(const ir::Graph& graph) {
  PLIMSOLL_RETURN_IF_ERROR(ir::verify(graph));
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const ir::Node& node = graph.nodes[n];
    const std::string where = node.layer.empty() ? fmt::format("node {}", n) : node.layer;
    auto inferred = infer(graph, node);
    if (!inferred) return forward(inferred, where);
    if (inferred->size() != node.outputs.size()) {
      return bad_input("{}: {}: has {} outputs, makes {}", where, node.op, node.outputs.size(),
                       inferred->size());
    }
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const TensorType& given = graph.value(node.outputs[i]).type;
      const TensorType& made = (*inferred)[i];
      if (given.dtype != made.dtype || given.shape != made.shape) {
        return bad_input("{}: {}: output {} is said to be {}, is {}", where, node.op, i,
                         ir::to_string(given), ir::to_string(made));
      }
    }
  }
  return {};
}

Cost cost_of(const ir::Graph& graph, const ir::Node& node) {
  return definition_of(node).cost(call_of(graph, node), output_types(graph, node));
}

}  // namespace plimsoll::ops
