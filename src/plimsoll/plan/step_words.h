// What a step does, as people read it: "relu", "recompute relu", "swap out h.0", "encode h.0
// (int8, lossy)". Plan files have words of their own, which stay: `send_out`, `bring_in`.
#pragma once

#include <string>
#include <string_view>

#include "plimsoll/plan/plan.h"

namespace plimsoll::plan {

// `what`: the operator, or the value that is moved.
std::string step_words(const PlanStep& step, std::string_view what);

}  // namespace plimsoll::plan
