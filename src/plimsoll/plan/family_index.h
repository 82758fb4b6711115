// The index of a family of plans: which file holds the plan of which size (docs/formats/plan.md).
//
//   {"kind": "plimsoll family", "schema": 1, "option": "batch",
//    "members": [{"size": 1, "file": "mlp.batch1.json", "arena_bytes": 4096, "shared": true}, ...]}
//
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

inline constexpr std::string_view kFamilyKind = "plimsoll family";
inline constexpr int kFamilySchema = 1;

struct FamilyEntry {
  std::int64_t size = 0;
  std::string file;
  std::optional<Bytes> arena;
  bool operator==(const FamilyEntry&) const = default;
};

struct FamilyIndex {
  std::string option;                // "batch" or "seq"
  std::vector<FamilyEntry> entries;  // smallest first
  bool operator==(const FamilyIndex&) const = default;
};

Result<FamilyIndex> parse_family_index(std::string_view json);

// True when the text begins like an index: lets verbs tell it from a plan.
bool looks_like_family(std::string_view json);

}  // namespace plimsoll::plan
