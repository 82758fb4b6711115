#include "plimsoll/profile/operator_costs.h"

#include <algorithm>
#include <map>
#include <set>

#include "plimsoll/ops/collective/collective.h"
#include "plimsoll/ops/collective/shard.h"
#include "plimsoll/ops/kernel_facts.h"
#include "plimsoll/ops/registry.h"

namespace plimsoll::profile {
namespace {

// A time near the launch alone says little of the rest.
constexpr double kLeastEfficiency = 0.01;
constexpr double kMostEfficiency = 10;

double collective_seconds(const schedule::Link& link, const ir::Graph& graph,
                          const ir::Node& node) {
  const std::int64_t ranks = ops::attributes_of(node).integer("ranks");
  if (ops::is_shard_operator(node.op))
    return schedule::scatter_seconds(link, ranks, ops::run_bytes(graph, node));
  Bytes read, made;
  for (const ValueId input : node.inputs) read += ir::bytes_of(graph.value(input).type);
  for (const ValueId output : node.outputs) made += ir::bytes_of(graph.value(output).type);
  if (node.op == "all_reduce") return schedule::all_reduce_seconds(link, ranks, made);
  if (node.op == "broadcast") return schedule::broadcast_seconds(link, ranks, made);
  return schedule::scatter_seconds(link, ranks, std::max(read, made));
}

}  // namespace

schedule::Cost node_cost(const schedule::DeviceProfile& profile, const ir::Graph& graph,
                         const ir::Node& node) {
  if (ops::is_collective(node.op) && node.op != "own_part")
    return {collective_seconds(profile.link, graph, node), false};
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

std::map<std::string, double> seconds_by_weight(const ir::Graph& graph,
                                                const schedule::DeviceProfile& profile) {
  std::map<ValueId, std::string> weights;
  for (std::size_t v = 0; v < graph.values.size(); ++v)
    if (graph.values[v].kind == ir::ValueKind::kWeight) weights[ValueId(v)] = graph.values[v].name;
  std::map<std::string, double> out;
  for (const ir::Node& node : graph.nodes) {
    std::set<std::string> read;
    for (const ValueId input : node.inputs)
      if (const auto weight = weights.find(input); weight != weights.end())
        read.insert(weight->second);
    if (read.empty()) continue;
    const double seconds = node_cost(profile, graph, node).seconds;
    for (const std::string& weight : read) out[weight] += seconds;
    if (node.op == "decode_weight") weights[node.outputs[0]] = *read.begin();
  }
  return out;
}

std::vector<OperatorCost> operator_costs(const ir::Graph& graph,
                                         const schedule::DeviceProfile& profile) {
  std::map<std::string, OperatorCost> by_op;
  for (const ir::Node& node : graph.nodes) {
    const schedule::Cost cost = node_cost(profile, graph, node);
    const std::string op = schedule::cost_class(ops::signature(graph, node));
    OperatorCost& sum = by_op[op];
    sum.op = op;
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

std::map<std::string, double> efficiencies(const ir::Graph& graph,
                                           const schedule::DeviceProfile& profile) {
  schedule::DeviceProfile roofline = profile;
  roofline.measured.clear();
  roofline.efficiency.clear();
  struct Sum {
    double roofline = 0;
    double measured = 0;
  };
  std::map<std::string, Sum> by_op;
  for (const ir::Node& node : graph.nodes) {
    const schedule::Cost cost = node_cost(profile, graph, node);
    if (!cost.measured) continue;
    Sum& sum = by_op[schedule::cost_class(ops::signature(graph, node))];
    sum.roofline += node_cost(roofline, graph, node).seconds - profile.launch_seconds;
    sum.measured += std::max(0.0, cost.seconds - profile.launch_seconds);
  }
  std::map<std::string, double> out;
  for (const auto& [op, sum] : by_op) {
    if (sum.roofline <= 0 || sum.measured <= 0) continue;
    out.emplace(op, std::clamp(sum.roofline / sum.measured, kLeastEfficiency, kMostEfficiency));
  }
  return out;
}

}  // namespace plimsoll::profile
