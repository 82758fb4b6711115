// Whatever a graph file says, a definition answers with types or with an error, and evaluates what
// it accepted without leaving its arrays (run under the asan preset, this is a proof of sorts).
// Seeds are fixed and printed.
#include <algorithm>
#include <array>
#include <limits>

#include <gtest/gtest.h>

#include "plimsoll/base/random.h"
#include "plimsoll/ops/definition/definitions.h"
#include "plimsoll/ops/evaluation/evaluate_call.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::ops {
namespace {

constexpr std::int64_t kEvaluateUpTo = 4096;  // elements of the results together

std::int64_t hostile_integer(Random& random) {
  constexpr std::array<std::int64_t, 8> kWild{std::numeric_limits<std::int64_t>::min(),
                                              std::numeric_limits<std::int64_t>::max(),
                                              std::int64_t{1} << 40,
                                              -(std::int64_t{1} << 40),
                                              std::numeric_limits<std::int64_t>::min() + 1,
                                              std::int64_t{1} << 62,
                                              -9,
                                              9};
  if (random.chance(0.1)) return kWild[static_cast<std::size_t>(random.below(kWild.size()))];
  return random.between(-2, 4);
}

ir::Attribute hostile_attribute(Random& random, int rank) {
  constexpr std::array<const char*, 12> kWords{"fp32", "int64", "bool", "fp64", "left",   "none",
                                               "add",  "max",   "edge", "wrap", "linear", "@10"};
  if (random.chance(0.1))
    return random.chance(0.5) ? std::numeric_limits<double>::quiet_NaN() : -1e300;
  if (random.chance(0.15))
    return std::string(kWords[static_cast<std::size_t>(random.below(kWords.size()))]);
  if (random.chance(0.4)) return hostile_integer(random);
  const std::int64_t count =
      random.chance(0.8) ? rank * random.between(1, 2) : random.between(0, 10);
  ir::Ints values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(hostile_integer(random));
  return values;
}

// Of the attributes the operator has, some; hardly ever of a wrong type: one such is enough for a
// refusal, and the values are what this test is about.
ir::Attributes hostile_attributes(Random& random, const OpDefinition& definition, int rank) {
  ir::Attributes out;
  const double share = random.uniform();
  const auto is_right = [&](std::string_view name, const ir::Attribute& value) {
    return check_attributes(definition.attributes, {{std::string(name), value}}).has_value();
  };
  const auto offer = [&](std::string_view name, const ir::Attribute& value) {
    if (is_right(name, value)) out.set(name, value);
  };
  offer("to", std::string("fp32"));
  offer("dtype", std::string("int32"));
  for (const AttributeSpec& spec : definition.attributes) {
    if (!random.chance(share)) continue;
    ir::Attribute value = hostile_attribute(random, rank);
    if (!spec.choice.empty() && random.chance(0.95)) {
      const std::uint64_t word = random.below(spec.choice.size());
      value = std::string(spec.choice[static_cast<std::size_t>(word)]);
    }
    while (!is_right(spec.name, value) && !random.chance(0.002))
      value = hostile_attribute(random, rank);
    out.set(spec.name, value);
  }
  // The common case of a plausible slice or permutation, so that evaluations happen too.
  if (random.chance(0.5)) {
    ir::Ints ones(static_cast<std::size_t>(rank), 1);
    ir::Ints order;
    for (int axis = rank - 1; axis >= 0; --axis) order.push_back(axis);
    offer("steps", ones);
    offer("perm", order);
    offer("repeats", ones);
    offer("k", std::int64_t{1});
    offer("block", std::int64_t{1});
    offer("axis", random.between(-rank, rank));
    offer("mode", std::string("DCR"));
  }
  return out;
}

Array hostile_array(Random& random, int rank) {
  ir::Shape shape;
  for (int axis = 0; axis < rank; ++axis) shape.push_back(random.between(0, 3));
  constexpr std::array<ir::DType, 6> kTypes{ir::DType::kF32,  ir::DType::kF32, ir::DType::kI64,
                                            ir::DType::kBool, ir::DType::kU64, ir::DType::kI32};
  Array out(
      ir::TensorType{kTypes[static_cast<std::size_t>(random.below(kTypes.size()))], shape, {}});
  for (double& value : out.reals) value = random.chance(0.1) ? 1e300 : random.normal();
  for (std::int64_t& value : out.integers) value = hostile_integer(random);
  out.round();
  return out;
}

std::vector<Array> hostile_inputs(Random& random, const OpDefinition& definition, int rank) {
  std::vector<Array> out;
  const auto [least, allowed] = definition.inputs;
  const int most = std::max(least, allowed > 4 ? 3 : allowed);  // groups take no fewer than 16
  const auto count = static_cast<int>(random.between(least, most));
  for (int i = 0; i < count; ++i) {
    const bool alike = !out.empty() && random.chance(0.5);
    out.push_back(alike ? out.front() : hostile_array(random, rank));
    if (i == 1 && random.chance(0.4)) {
      Array indices(ir::TensorType{ir::DType::kI64, out.back().type.shape, {}});
      for (std::int64_t& value : indices.integers) value = hostile_integer(random);
      out.back() = indices;
    }
    // What counts draws of random numbers.
    if (i == 1 && random.chance(0.1)) out.back() = Array(ir::TensorType{ir::DType::kU64, {}, {}});
  }
  return out;
}

bool is_small(const std::vector<ir::TensorType>& types) {
  std::int64_t total = 0;
  for (const ir::TensorType& type : types) {
    if (type.shape.elements() > kEvaluateUpTo) return false;
    total += type.shape.elements();
  }
  return total <= kEvaluateUpTo;
}

TEST(HostileCalls, EndInAnErrorOrInAnEvaluation) {
  constexpr std::uint64_t kSeed = 20240611;
  RecordProperty("seed", std::to_string(kSeed));
  Random random(kSeed);
  for (const auto family : {binary_definitions,          power_definitions,
                            comparison_definitions,      bitwise_definitions,
                            unary_definitions,           activation_definitions,
                            activation_grad_definitions, cast_definitions,
                            dropout_definitions,         shaping_definitions,
                            depth_to_space_definitions,  slicing_definitions,
                            joining_definitions,         padding_definitions,
                            indexing_definitions,        indexing_elements_definitions,
                            indexing_nd_definitions,     resize_definitions,
                            reduction_definitions,       running_sum_definitions,
                            ranking_definitions,         collective_definitions,
                            random_uniform_definitions}) {
    for (const OpDefinition& definition : family()) {
      int evaluated = 0;
      for (int attempt = 0; attempt < (evaluated > 0 ? 1000 : 20000); ++attempt) {
        const int rank = static_cast<int>(random.between(0, 4));
        const std::vector<Array> inputs = hostile_inputs(random, definition, rank);
        const ir::Attributes attributes = hostile_attributes(random, definition, rank);
        std::vector<ir::TensorType> types;
        for (const Array& input : inputs) types.push_back(input.type);
        const auto outputs = infer_call(definition.name, types, attributes);
        if (!outputs || !is_small(*outputs)) continue;
        const auto result = evaluate_call(definition.name, inputs, attributes);
        ASSERT_TRUE(result.has_value()) << definition.name << " seed " << kSeed;
        ++evaluated;
      }
      EXPECT_GT(evaluated, 0) << definition.name << " accepted nothing; seed " << kSeed;
    }
  }
}

}  // namespace
}  // namespace plimsoll::ops
