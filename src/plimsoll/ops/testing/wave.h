// Test data that PyTorch's side (tools/references) makes alike, and fingerprints of results. For
// tests.
//
// A wave is sin(1.3 i + phase) over the elements; the fingerprint of a result is its two sums
// weighted with waves, which no plausible mistake leaves unchanged.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/ops/builder.h"
#include "plimsoll/ops/evaluation/interpreter.h"

namespace plimsoll::ops {

inline Array wave(const ir::Shape& shape, double phase) {
  Array out(TensorType{ir::DType::kF64, shape, {}});
  for (std::size_t i = 0; i < out.reals.size(); ++i)
    out.reals[i] = std::sin(1.3 * static_cast<double>(i) + phase);
  return out;
}

struct Fingerprint {
  double first;
  double second;
};

inline Fingerprint fingerprint(const Array& array) {
  Fingerprint out{0, 0};
  for (std::int64_t i = 0; i < array.elements(); ++i) {
    out.first += array.number(i) * std::sin(1.3 * static_cast<double>(i) + 0.1);
    out.second += array.number(i) * std::sin(1.3 * static_cast<double>(i) + 2.3);
  }
  return out;
}

inline void expect_fingerprint(const Array& array, Fingerprint expected) {
  const Fingerprint made = fingerprint(array);
  EXPECT_NEAR(made.first, expected.first, 1e-11);
  EXPECT_NEAR(made.second, expected.second, 1e-11);
}

// The results of one operator.
inline std::vector<Array> run_operator(std::string_view op, const std::vector<Array>& inputs,
                                       const ir::Attributes& attributes = {}) {
  Builder builder("one");
  std::unordered_map<std::string, Array> sources;
  std::vector<Var> vars;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    vars.push_back(builder.input(name, inputs[i].type));
    sources[name] = inputs[i];
  }
  const std::vector<Var> results = builder.call(op, vars, attributes);
  const auto graph = builder.finish(results);
  if (!graph) {
    ADD_FAILURE() << op << ": " << graph.error().message;
    return std::vector<Array>(results.size());
  }
  const auto values = interpret(*graph, sources);
  EXPECT_TRUE(values.has_value());
  std::vector<Array> out;
  for (const ValueId id : graph->outputs) out.push_back(*(*values)[id.index()]);
  return out;
}

// The message of the type rule, or "" when it accepts.
inline std::string refusal(std::string_view op, const std::vector<TensorType>& inputs,
                           const ir::Attributes& attributes = {}) {
  Builder builder("one");
  std::vector<Var> vars;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    vars.push_back(builder.input("x" + std::to_string(i), inputs[i]));
  builder.call(op, vars, attributes);
  return builder.error() ? builder.error()->message : "";
}

}  // namespace plimsoll::ops
