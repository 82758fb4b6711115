#include "plimsoll/kernels/cpu/cpu_kernels.h"
#include "plimsoll/kernels/cpu/packed_bytes.h"
#include "plimsoll/kernels/testing/differential_case.h"
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
  for (const ops::InPlace::Pair& pair : overlays(built)) {
    EXPECT_EQ(once, run_kernel(built, 2, pair))
        << "output " << pair.output << " laid over input " << pair.input << " differs";
  }
}

}  // namespace plimsoll::kernels
