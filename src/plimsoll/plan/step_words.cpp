#include "plimsoll/plan/step_words.h"

#include <fmt/format.h>

#include "plimsoll/schedule/workload/graph_encodings.h"

namespace plimsoll::plan {
namespace {

std::string_view done_to(StepKind kind) {
  if (kind == StepKind::kCopyOut) return "swap out";
  if (kind == StepKind::kCopyIn) return "swap in";
  return name(kind);
}

}  // namespace

std::string step_words(const PlanStep& step, std::string_view what) {
  if (step.kind == StepKind::kCompute) return std::string(what);
  const std::string_view loss = schedule::is_lossy_form(step.codec) ? ", lossy" : "";
  const std::string form = step.codec.empty() ? "" : fmt::format(" ({}{})", step.codec, loss);
  return fmt::format("{} {}{}", done_to(step.kind), what, form);
}

}  // namespace plimsoll::plan
