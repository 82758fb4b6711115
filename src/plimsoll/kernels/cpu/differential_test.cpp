#include "plimsoll/kernels/testing/differential.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "plimsoll/base/random.h"
#include "plimsoll/kernels/cpu/cpu_kernels.h"
#include "plimsoll/kernels/cpu/packed_bytes.h"
#include "plimsoll/ops/evaluation/interpreter.h"
#include "plimsoll/ops/kernel_facts.h"

namespace plimsoll::kernels {
namespace {

constexpr std::size_t kGuard = 256;
constexpr auto kGuardByte = std::byte{0xA5};

// Memory with a guard behind it, filled with what a lazy kernel would trip over.
class Guarded {
 public:
  explicit Guarded(std::size_t bytes)
      : size_(bytes), memory_(bytes + kGuard + kAlignment, std::byte{0xFF}) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    shift_ = (kAlignment - address % kAlignment) % kAlignment;
    std::fill_n(data() + size_, kGuard, kGuardByte);
  }
  std::byte* data() { return memory_.data() + shift_; }
  std::vector<std::byte> bytes() { return {data(), data() + size_}; }
  void set(const std::vector<std::byte>& bytes) { std::copy(bytes.begin(), bytes.end(), data()); }
  bool intact() {
    return std::all_of(data() + size_, data() + size_ + kGuard,
                       [](std::byte b) { return b == kGuardByte; });
  }

 private:
  std::size_t size_;
  std::vector<std::byte> memory_;
  std::size_t shift_ = 0;
};

ops::Array random_array(const Tensor& tensor, Random& random) {
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

Built build(const Differential& d, Random& random) {
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

using Outputs = std::vector<std::vector<std::byte>>;

Outputs run_kernel(const Built& built, int threads,
                   std::optional<ops::InPlace::Pair> overlaid = std::nullopt) {
  const ir::Node& node = built.graph.nodes.front();
  auto kernel = make_cpu_kernel(built.graph, node, {threads});
  EXPECT_TRUE(kernel.has_value());
  std::vector<Guarded> memory;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  memory.reserve(node.inputs.size() + node.outputs.size() + 1);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].valid()) {
      inputs.push_back(nullptr);
      memory.emplace_back(0);
      continue;
    }
    const ir::TensorType& type = built.graph.value(node.inputs[i]).type;
    memory.emplace_back(static_cast<std::size_t>(ir::bytes_of(type).value))
        .set(from_row_major(type, built.arrays[i].to_bytes()));
    inputs.push_back(memory.back().data());
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const bool over = overlaid && overlaid->output == static_cast<int>(i);
    memory.emplace_back(
        static_cast<std::size_t>(ir::bytes_of(built.graph.value(node.outputs[i]).type).value));
    outputs.push_back(over ? memory[static_cast<std::size_t>(overlaid->input)].data()
                           : memory.back().data());
  }
  memory.emplace_back(static_cast<std::size_t>((*kernel)->scratch().value));
  (*kernel)->run({inputs, outputs, memory.back().data()});
  for (Guarded& block : memory)
    EXPECT_TRUE(block.intact()) << "wrote behind a tensor or its scratch";
  Outputs out;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const ir::TensorType& type = built.graph.value(node.outputs[i]).type;
    out.push_back(
        to_row_major(type, {outputs[i], static_cast<std::size_t>(ir::bytes_of(type).value)}));
  }
  return out;
}

// What a kernel that flushes denormals may make of a number.
constexpr double kSmallestNormal = 1.17549435e-38;

constexpr double kLargest = 3.4028234663852886e38;

// Where elements are summed, one infinity is lost in another by the order of the sum: there it is
// enough that what is not finite stays so. Elsewhere infinities are themselves, but for a rounding
// at the end of the range.
bool agree(const Differential& d, double want, double have, double largest) {
  const bool summed = !d.each_alone && d.tolerance > 0;
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

void compare_reals(const Differential& d, const ops::Array& want, const ops::Array& have,
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

void compare(const Differential& d, const Built& built, const Outputs& got) {
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

}  // namespace

void expect_agreement(const Differential& d) {
  Random random(0x5eed);
  const Built built = build(d, random);
  if (built.graph.nodes.empty()) return;
  const ir::Node& node = built.graph.nodes.front();
  SCOPED_TRACE(ops::signature(built.graph, node));
  EXPECT_TRUE(d.may_fall_back || has_special_kernel(built.graph, node))
      << "falls back to the reference evaluation";
  const Outputs once = run_kernel(built, 2);
  compare(d, built, once);
  EXPECT_EQ(once, run_kernel(built, 2)) << "two runs differ";
  if (d.same_bits_on_any_threads) {
    EXPECT_EQ(once, run_kernel(built, 1)) << "1 and 2 threads differ";
  }
  const auto kernel = make_cpu_kernel(built.graph, node, {2});
  if (!(*kernel)->in_place()) return;
  for (const ops::InPlace::Pair& pair : ops::definition_of(node).in_place.pairs()) {
    const auto input = static_cast<std::size_t>(pair.input);
    if (input >= node.inputs.size() || !node.inputs[input].valid()) continue;
    const ir::TensorType& under = built.graph.value(node.inputs[input]).type;
    if (ir::bytes_of(under) !=
        ir::bytes_of(built.graph.value(node.outputs[static_cast<std::size_t>(pair.output)]).type))
      continue;
    EXPECT_EQ(once, run_kernel(built, 2, pair))
        << "output " << pair.output << " laid over input " << pair.input << " differs";
  }
}

}  // namespace plimsoll::kernels
