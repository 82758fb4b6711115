#include <fmt/format.h>

#include "plimsoll/runtime/executor.h"

namespace plimsoll::runtime {

Status BoundKernel::check_addresses(const device::Device& device, const ir::Graph& graph,
                                    const ir::Node& node) const {
  const device::DeviceNumber own = device.number();
  const auto what = [&] { return display_name(node); };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    PLIMSOLL_RETURN_IF_ERROR(device::check_operand(own, inputs[i], what, [&] {
      return fmt::format("input {} '{}'", i, graph.value(node.inputs[i]).name);
    }));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    PLIMSOLL_RETURN_IF_ERROR(device::check_operand(own, outputs[i], what, [&] {
      return fmt::format("result {} '{}'", i, graph.value(node.outputs[i]).name);
    }));
  }
  return device::check_operand(own, scratch, what, [] { return std::string("its scratch"); });
}

}  // namespace plimsoll::runtime
