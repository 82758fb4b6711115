#include "plimsoll/profile/operator_costs.h"

#include <algorithm>
#include <map>

#include "plimsoll/ops/kernel_facts.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::profile {

schedule::Cost node_cost(const schedule::DeviceProfile& profile, const ir::Graph& graph,
                         const ir::Node& node) {
  const ops::Cost cost = ops::cost_of(graph, node);
  const ValueId typed = node.outputs.front();
  return schedule::cost_of(profile, ops::signature(graph, node),
                           ir::name(graph.value(typed).type.dtype), cost.operations, cost.bytes());
}

schedule::CostParts node_cost_parts(const schedule::DeviceProfile& profile, const ir::Graph& graph,
                                    const ir::Node& node) {
  const ops::Cost cost = ops::cost_of(graph, node);
  const ValueId typed = node.outputs.front();
  return schedule::cost_parts(profile, ops::signature(graph, node),
                              ir::name(graph.value(typed).type.dtype), cost.operations,
                              cost.bytes());
}

std::vector<OperatorCost> operator_costs(const ir::Graph& graph,
                                         const schedule::DeviceProfile& profile) {
  std::map<std::string, OperatorCost> by_op;
  for (const ir::Node& node : graph.nodes) {
    const schedule::Cost cost = node_cost(profile, graph, node);
    OperatorCost& sum = by_op[node.op];
    sum.op = node.op;
    ++sum.nodes;
    sum.measured += cost.measured;
    sum.seconds += cost.seconds;
  }
  std::vector<OperatorCost> out;
  for (auto& [op, sum] : by_op) out.push_back(std::move(sum));
  std::sort(out.begin(), out.end(),
            [](const OperatorCost& a, const OperatorCost& b) { return a.seconds > b.seconds; });
  return out;
}

}  // namespace plimsoll::profile
