// The parts of a differential test that do not depend on the device: the node with its inputs, and
// what agreement with the reference evaluation means. For tests only.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "plimsoll/base/random.h"
#include "plimsoll/kernels/testing/differential.h"
#include "plimsoll/ops/evaluation/interpreter.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::kernels {

inline ops::Array random_array(const Tensor& tensor, Random& random) {
  ops::Array out({tensor.type.dtype, tensor.type.shape, {}});
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    if (!tensor.values.empty()) {
      out.set_number(i, tensor.values[static_cast<std::size_t>(i) % tensor.values.size()]);
      continue;
    }
    out.set_number(i, std::floor((tensor.low + (tensor.high - tensor.low) * random.uniform()) *
                                 (out.is_real() ? 4096 : 1)) /
                          (out.is_real() ? 4096 : 1));
  }
  out.round();
  return out;
}

struct Built {
  ir::Graph graph;
  std::vector<ops::Array> arrays;
};

inline Built build(const Differential& d, Random& random) {
  Built out;
  ir::Node node;
  node.op = d.op;
  node.attributes = d.attributes;
  for (std::size_t i = 0; i < d.inputs.size(); ++i) {
    const Tensor& tensor = d.inputs[i];
    out.arrays.push_back(tensor.absent ? ops::Array() : random_array(tensor, random));
    node.inputs.push_back(tensor.absent ? ValueId()
                                        : out.graph.add_source(fmt::format("x{}", i),
                                                               ir::ValueKind::kInput, tensor.type));
  }
  auto types = ops::infer(out.graph, node);
  EXPECT_TRUE(types.has_value()) << types.error().message;
  if (!types) return out;
  for (std::size_t i = 0; i < d.layouts.size(); ++i) {
    if (d.layouts[i]) (*types)[i].layout = *d.layouts[i];
  }
  out.graph.add_node(std::move(node), *types, ir::ValueKind::kActivation);
  return out;
}

// The bytes of every output, row-major.
using Outputs = std::vector<std::vector<std::byte>>;

// What a kernel that flushes denormals may make of a number.
inline constexpr double kSmallestNormal = 1.17549435e-38;

inline constexpr double kLargest = 3.4028234663852886e38;

// Where elements are summed, one infinity is lost in another by the order of the sum: there it is
// enough that what is not finite stays so. Elsewhere infinities are themselves, but for a rounding
// at the end of the range.
inline bool agree(const Differential& d, double want, double have, double largest) {
  const bool summed = !d.each_alone && d.tolerance > 0;
  if (d.only_finite && !(std::isfinite(want) && std::isfinite(have))) return true;
  if (summed && !(std::isfinite(want) && std::isfinite(have)))
    return std::isfinite(want) == std::isfinite(have);
  if (std::isnan(want) || std::isnan(have)) return std::isnan(want) && std::isnan(have);
  if (want == have) return !d.each_alone || want != 0 || std::signbit(want) == std::signbit(have);
  if (std::isinf(want) || std::isinf(have)) {
    const double finite = std::isinf(want) ? have : want;
    return std::signbit(want) == std::signbit(have) &&
           std::abs(finite) >= (1 - d.tolerance) * kLargest;
  }
  const double allowed = d.tolerance * (d.each_alone ? std::abs(want) : largest);
  return std::abs(want - have) <= allowed + (d.each_alone ? kSmallestNormal : 0);
}

inline void compare_reals(const Differential& d, const ops::Array& want, const ops::Array& have,
                          const std::string& what) {
  double largest = 1e-6;
  for (const double number : want.reals) {
    if (std::isfinite(number)) largest = std::max(largest, std::abs(number));
  }
  for (std::size_t i = 0; i < want.reals.size(); ++i) {
    ASSERT_TRUE(agree(d, want.reals[i], have.reals[i], largest))
        << what << " element " << i << " of " << want.reals.size() << ": "
        << fmt::format("{}, the reference says {}", have.reals[i], want.reals[i]);
  }
}

inline void compare(const Differential& d, const Built& built, const Outputs& got) {
  const ir::Node& node = built.graph.nodes.front();
  std::vector<const ops::Array*> inputs;
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    inputs.push_back(node.inputs[i].valid() ? &built.arrays[i] : nullptr);
  const std::vector<ops::Array> expected = ops::evaluate(built.graph, node, inputs);
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const ops::Array have = *ops::Array::from_bytes(expected[k].type, got[k]);
    const std::string what = fmt::format("output {}", k);
    EXPECT_EQ(have.integers, expected[k].integers) << what;
    compare_reals(d, expected[k], have, what);
  }
}

// Which outputs may lie over which inputs of this node, where both have the same size.
inline std::vector<ops::InPlace::Pair> overlays(const Built& built) {
  const ir::Node& node = built.graph.nodes.front();
  std::vector<ops::InPlace::Pair> out;
  for (const ops::InPlace::Pair& pair : ops::definition_of(node).in_place.pairs()) {
    const auto input = static_cast<std::size_t>(pair.input);
    if (input >= node.inputs.size() || !node.inputs[input].valid()) continue;
    const ir::TensorType& under = built.graph.value(node.inputs[input]).type;
    const ir::TensorType& over =
        built.graph.value(node.outputs[static_cast<std::size_t>(pair.output)]).type;
    if (ir::bytes_of(under) == ir::bytes_of(over)) out.push_back(pair);
  }
  return out;
}

}  // namespace plimsoll::kernels
