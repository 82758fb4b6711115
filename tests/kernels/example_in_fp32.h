// An operator's example as a call in fp32, which kernels are made for.
#pragma once

#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "plimsoll/autodiff/testing/operator_examples.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll {

struct ExampleCall {
  ir::Graph graph;  // a single node
  std::vector<std::optional<ops::Array>> inputs;
};

inline ExampleCall in_fp32(const autodiff::OperatorExample& example) {
  ExampleCall out;
  ir::Node node;
  node.op = example.op;
  node.attributes = example.attributes;
  for (const auto& input : example.inputs) {
    out.inputs.push_back(input);
    if (!input) {
      node.inputs.emplace_back();
      continue;
    }
    ops::Array& array = *out.inputs.back();
    if (array.is_real()) {
      array.type.dtype = ir::DType::kF32;
      array.round();
    }
    node.inputs.push_back(out.graph.add_source(fmt::format("x{}", node.inputs.size()),
                                               ir::ValueKind::kInput, array.type));
  }
  const auto types = ops::infer(out.graph, node);
  EXPECT_TRUE(types.has_value()) << types.error().message;
  if (types) out.graph.add_node(std::move(node), *types, ir::ValueKind::kActivation);
  return out;
}

}  // namespace plimsoll
