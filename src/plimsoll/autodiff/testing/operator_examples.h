// Example calls of every differentiable operator, with values: what the gradient checks run on.
//
// Values lie where finite differences make sense: away from kinks (relu at 0), from poles and from
// domain ends. Each operator has at least one example; where the operator broadcasts, takes empty
// tensors or behaves differently by attribute, one each. A test walks the registry and fails when
// a differentiable definition has none.
//
// One function per family; operator_examples() joins them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plimsoll/ir/attributes.h"
#include "plimsoll/ops/evaluation/array.h"

namespace plimsoll::autodiff {

struct OperatorExample {
  std::string op;
  std::string what;  // "broadcast", "empty", "mode wrap": tells examples of one operator apart
  // fp64 or integer; nothing for an absent optional input.
  std::vector<std::optional<ops::Array>> inputs;
  ir::Attributes attributes;
  // The second derivative exists near the values (a kink elsewhere does not matter).
  bool smooth = true;
  // Inputs that are constants to the gradient although they are floats (an attention mask).
  std::vector<int> fixed;
};

// Reals uniform in [low, high), the same for the same seed on every machine.
ops::Array example_reals(const ir::Shape& shape, double low, double high, std::uint64_t seed);
// Magnitudes in [low, high), either sign.
ops::Array example_signed(const ir::Shape& shape, double low, double high, std::uint64_t seed);
ops::Array example_integers(const ir::Shape& shape, std::vector<std::int64_t> values,
                            ir::DType dtype = ir::DType::kI64);

// A weight [rows, columns] of q8_0 as the operators on encoded weights take it, and their
// attributes for it.
ops::Array example_encoded(std::int64_t rows, std::int64_t columns, std::uint64_t seed);
ir::Attributes example_encoded_attributes(std::int64_t rows, std::int64_t columns);

std::vector<OperatorExample> elementwise_examples();
std::vector<OperatorExample> shaping_examples();
std::vector<OperatorExample> indexing_examples();
std::vector<OperatorExample> reduction_examples();
// Products, normalisations, losses, pooling.
std::vector<OperatorExample> nn_examples();

// All of them.
std::vector<OperatorExample> operator_examples();

// The operators that have no gradient, one example each.
std::vector<OperatorExample> examples_without_gradient();

}  // namespace plimsoll::autodiff
