// The seconds of operators on a profiled device, measured where they were, else estimated.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plimsoll/ir/graph.h"
#include "plimsoll/schedule/device_profile.h"

namespace plimsoll::profile {

// Of one node.
schedule::Cost node_cost(const schedule::DeviceProfile& profile, const ir::Graph& graph,
                         const ir::Node& node);

schedule::CostParts node_cost_parts(const schedule::DeviceProfile& profile, const ir::Graph& graph,
                                    const ir::Node& node);

// By the names of weights: what reads each of them takes together, and what decodes it; where one
// is decoded first, also what reads it decoded.
std::map<std::string, double> seconds_by_weight(const ir::Graph& graph,
                                                const schedule::DeviceProfile& profile);

// By operator, as schedule::cost_class tells them apart: how many nodes a graph has of it, what
// they take together, and how many of them were measured.
struct OperatorCost {
  std::string op;
  std::int64_t nodes = 0;
  std::int64_t measured = 0;  // the others are estimated
  double seconds = 0;
};
// The most expensive first.
std::vector<OperatorCost> operator_costs(const ir::Graph& graph,
                                         const schedule::DeviceProfile& profile);

// The share of the roofline that the measured nodes of a graph reach, by cost class: with it, those
// of other models are estimated. Above one where the kernel does less than the operator's formula
// says, or works in the cache.
std::map<std::string, double> efficiencies(const ir::Graph& graph,
                                           const schedule::DeviceProfile& profile);

}  // namespace plimsoll::profile
