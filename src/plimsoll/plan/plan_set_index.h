// The index of a plan set: which file holds the plan of which size (docs/formats/plan.md).
//
//   {"kind": "plimsoll family", "schema": 1, "option": "batch",
//    "members": [{"size": 1, "file": "mlp.batch1.json", "arena_bytes": 4096, "shared": true}, ...]}
//
// or, of several options, {"options": ["batch", "seq"], "members": [{"size": [1, 16], ...}, ...]}.
// Reading trusts nothing: sizes are positive and each is there once, and a member is a plain name
// beside the index, so that an index cannot lead to a file elsewhere. `arena_bytes` is what the
// member's plan must have; whoever opens the member compares.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"

namespace plimsoll::plan {

inline constexpr std::string_view kPlanSetKind = "plimsoll family";
inline constexpr int kPlanSetSchema = 1;

struct PlanSetEntry {
  std::vector<std::int64_t> sizes;  // by option
  std::string file;
  std::optional<Bytes> arena;
  bool operator==(const PlanSetEntry&) const = default;
};

struct PlanSetIndex {
  std::vector<std::string> options;   // of "batch" and "seq"
  std::vector<PlanSetEntry> entries;  // smallest first, by the first option first
  bool operator==(const PlanSetIndex&) const = default;
};

Result<PlanSetIndex> parse_plan_set_index(std::string_view json);

// True when the text begins like an index: lets verbs tell it from a plan.
bool looks_like_plan_set(std::string_view json);

}  // namespace plimsoll::plan
