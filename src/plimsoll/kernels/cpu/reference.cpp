#include "plimsoll/kernels/cpu/reference.h"

#include <cstring>

#include "plimsoll/kernels/cpu/packed_bytes.h"
#include "plimsoll/ops/evaluation/interpreter.h"

namespace plimsoll::kernels {
namespace {

class ReferenceKernel final : public Kernel {
 public:
  explicit ReferenceKernel(const Site& site) : node_(site.node) {
    for (ValueId& input : node_.inputs)
      input = input.valid() ? copy_value(site.graph, input) : input;
    for (ValueId& output : node_.outputs) output = copy_value(site.graph, output);
  }

  void run(const Arguments& arguments) override {
    std::vector<ops::Array> arrays(arguments.inputs.size());
    std::vector<const ops::Array*> inputs(arguments.inputs.size());
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      if (!node_.inputs[i].valid()) continue;
      const ir::TensorType& type = types_.value(node_.inputs[i]).type;
      arrays[i] =
          *ops::Array::from_bytes(type, to_row_major(type, {arguments.inputs[i], size_of(type)}));
      inputs[i] = &arrays[i];
    }
    const std::vector<ops::Array> outputs = ops::evaluate(types_, node_, std::move(inputs));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const std::vector<std::byte> bytes =
          from_row_major(types_.value(node_.outputs[i]).type, outputs[i].to_bytes());
      if (!bytes.empty()) std::memcpy(arguments.outputs[i], bytes.data(), bytes.size());
    }
  }

 private:
  static std::size_t size_of(const ir::TensorType& type) {
    return static_cast<std::size_t>(ir::bytes_of(type).value);
  }

  ValueId copy_value(const ir::Graph& graph, ValueId id) {
    types_.values.push_back(graph.value(id));
    return ValueId(types_.values.size() - 1);
  }

  ir::Graph types_;  // only the values this node touches
  ir::Node node_;
};

}  // namespace

std::unique_ptr<Kernel> make_reference(const Site& site) {
  return std::make_unique<ReferenceKernel>(site);
}

}  // namespace plimsoll::kernels
