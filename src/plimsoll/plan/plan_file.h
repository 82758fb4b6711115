// The plan file: versioned JSON that holds everything a plan is, graph included.
// docs/formats/plan.md describes it field by field.
//
// Reading trusts nothing: ids and sizes are range-checked here, and the caller runs check_plan() on
// the result before it uses it (the executor and `plimsoll check` both do).
#pragma once

#include <string>
#include <string_view>

#include "plimsoll/base/result.h"
#include "plimsoll/plan/plan.h"

namespace plimsoll::plan {

inline constexpr int kPlanSchema = 1;

std::string to_json(const Plan& plan);
Result<Plan> parse_plan(std::string_view json);

// True when the text begins like a plan file: lets verbs tell a plan from other JSON.
bool looks_like_plan(std::string_view json);

// An error when the plan was made for another machine: other kernels may want other scratch.
Status require_environment(const Plan& plan, const Environment& here);

}  // namespace plimsoll::plan
