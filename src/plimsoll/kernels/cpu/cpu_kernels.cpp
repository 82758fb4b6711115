#include "plimsoll/kernels/cpu/cpu_kernels.h"

#include <cstring>

#include "plimsoll/ops/interpreter.h"

namespace plimsoll::kernels {
namespace {

// Runs the card's reference evaluation. Slow, and it allocates: for tests and rare types only.
class ReferenceKernel final : public Kernel {
 public:
  ReferenceKernel(const ir::Graph& graph, const ir::Node& node) : node_(node) {
    for (ValueId& input : node_.inputs) input = input.valid() ? copy_value(graph, input) : input;
    for (ValueId& output : node_.outputs) output = copy_value(graph, output);
  }

  void run(const Arguments& arguments) override {
    std::vector<ops::Array> arrays(arguments.inputs.size());
    std::vector<const ops::Array*> inputs(arguments.inputs.size());
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      if (!node_.inputs[i].valid()) continue;
      const ir::TensorType& type = types_.value(node_.inputs[i]).type;
      arrays[i] = *ops::Array::from_bytes(type, {arguments.inputs[i], static_cast<std::size_t>(ir::bytes_of(type).value)});
      inputs[i] = &arrays[i];
    }
    const std::vector<ops::Array> outputs = ops::evaluate(types_, node_, std::move(inputs));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::vector<std::byte> bytes = outputs[i].to_bytes();
      if (!bytes.empty()) std::memcpy(arguments.outputs[i], bytes.data(), bytes.size());
    }
  }

 private:
  ValueId copy_value(const ir::Graph& graph, ValueId id) {
    types_.values.push_back(graph.value(id));
    return ValueId(types_.values.size() - 1);
  }

  ir::Graph types_;  // only the values this node touches
  ir::Node node_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> make_cpu_kernel(const ir::Graph& graph, const ir::Node& node,
                                                const CpuKernelOptions&) {
  return std::make_unique<ReferenceKernel>(graph, node);
}

Result<ops::KernelTable> cpu_kernel_facts(const ir::Graph& graph, const CpuKernelOptions& options) {
  ops::KernelTable table;
  for (const ir::Node& node : graph.nodes) {
    std::string key = ops::signature(graph, node);
    if (table.facts.contains(key)) continue;
    PLIMSOLL_TRY(const std::unique_ptr<Kernel> kernel, make_cpu_kernel(graph, node, options));
    table.facts.emplace(std::move(key), ops::KernelFacts{kernel->scratch(), kernel->in_place(), 0});
  }
  return table;
}

}  // namespace plimsoll::kernels
