// Plans on disk: one file each, and for a plan set an index that names them.
//
//   mlp.json          {"kind": "plimsoll family", "option": "batch", "members": [{"size": 1,
//                     "file": ...}, ...]}
//   mlp.batch1.json   a plan (docs/formats/plan.md)
//   mlp.batch2.json   ...
//
// Of two options: "options" instead of "option", and mlp.batch1.seq16.json.
//
// Whoever opens the index with a size gets the plan of that size, without planning; with no size,
// the largest. Members lie beside the index: a name that leads anywhere else is refused.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "plimsoll/plan/fit/plan_set.h"

namespace plimsoll::plan {

// The members, then the index under the name given: all of them or none (base/output_file.h).
Status write_plan_set(const std::string& file, const SizeGrid& sizes,
                      const std::vector<PlanSetMember>& plans);

// By the name of the option: {"batch", 8}.
using WantedSizes = std::map<std::string, std::int64_t>;

// The plan in a file; of a plan set, the one for the size that is wanted.
Result<Plan> read_plan(const std::string& file, const WantedSizes& wanted);

// The plans of a plan set for these sizes, smallest first.
Result<std::vector<Plan>> read_plans(const std::string& file, const SizeGrid& sizes);

}  // namespace plimsoll::plan
