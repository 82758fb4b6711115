// The plan when nothing has to be given up: order, buckets, offsets, streams.
//
// Two candidates, the given order and the one that `order` asks for; each goes the whole way, and
// the one with the smaller arena is the answer, the given order on ties. So a better order never
// makes a worse plan, whatever the packer does with it. Where concats can do without a copy
// (schedule/workload/joined_parts.h), both are tried with and without, and the copies go on ties.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/api/planning.h"
#include "plimsoll/plan/make_plan.h"

namespace plimsoll::api {

struct Mapping {
  bool in_place = true;
  bool join = false;
};
// Whether maps may be encoded.
bool encodes(const PlanOptions& options);
Result<schedule::GraphWorkload> workload_of(const ir::Graph& graph, const PlanOptions& options,
                                            const Mapping& mapping);

// The values with these names, sources that stay anyway left out; an unknown name is an error.
Result<std::vector<ValueId>> values_to_pin(const ir::Graph& graph,
                                           const std::vector<std::string>& names);

// Onto options.streams compute streams; within the plan's budget, when it has one.
Status spread(plan::Plan& plan, const PlanOptions& options);

// How a schedule is packed, whatever made it.
Result<plan::MakePlanOptions> packing_options(const ir::Graph& graph, const PlanOptions& options);

// The plan, after the independent checker has agreed.
Result<plan::Plan> checked(Result<plan::Plan> plan);

// With a budget: on one stream, as what the budget is held against.
Result<plan::Plan> plan_keep_all(const ir::Graph& graph, const schedule::GraphWorkload& mapped,
                                 const PlanOptions& options);

}  // namespace plimsoll::api
