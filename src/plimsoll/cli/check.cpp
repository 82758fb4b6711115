#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "plimsoll/api/planning.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/json.h"
#include "plimsoll/cli/model_options.h"
#include "plimsoll/cli/plan_options.h"
#include "plimsoll/cli/terminal.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kCheckExamples =
    "Examples:\n"
    "  plimsoll check plan.json                                     is this plan right?\n"
    "  plimsoll check resnet50 --batch 8 --max-peak 2GiB            a memory test for CI: exit 4 "
    "when above\n"
    "  plimsoll check model.onnx --train --loss cross-entropy --max-peak 2GiB";

struct CheckOptions {
  api::ModelRequest request;
  api::PlanRequest planning;
  std::string max_peak;
  bool json = false;
};

// In bytes where both would be the same number of MiB.
std::string excess_of(Bytes peak, Bytes limit) {
  if (human(peak) != human(limit))
    return fmt::format("peak {} is above the limit of {}", human(peak), human(limit));
  return fmt::format("peak {} bytes is above the limit of {} bytes", grouped(peak.value),
                     grouped(limit.value));
}

Status check(const CheckOptions& options, Command& command) {
  std::optional<Bytes> limit;
  if (!options.max_peak.empty()) {
    PLIMSOLL_TRY(limit, parse_byte_size(options.max_peak));
  }
  PLIMSOLL_TRY(const api::CheckReport result,
               api::check_model_or_plan(options.request, options.planning));
  const bool right = result.problems.empty();
  const bool above = limit && result.peak > *limit;
  const std::string excess = above ? excess_of(result.peak, *limit) : "";
  if (options.json) {
    std::vector<std::string> problems = result.problems;
    if (above) problems.push_back(excess);
    nlohmann::ordered_json out{{"schema", 1},
                               {"ok", problems.empty()},
                               {"peak_bytes", result.peak.value},
                               {"problems", problems}};
    if (limit) out["max_peak_bytes"] = limit->value;
    command.answer(json_text(out, 2));
  } else {
    for (const std::string& problem : result.problems) std::printf("%s\n", problem.c_str());
    const std::string verdict =
        !right  ? inked("WRONG", Ink::kRed, STDOUT_FILENO)
        : above ? inked("ABOVE THE LIMIT", Ink::kRed, STDOUT_FILENO) + " of " + human(*limit)
        : limit ? "right, within the limit of " + human(*limit)
                : "right";
    std::printf("%s: %s, peak %s (%s bytes)\n", options.request.model.c_str(), verdict.c_str(),
                human(result.peak).c_str(), grouped(result.peak.value).c_str());
  }
  if (!right)
    return bad_input("{}: the plan is wrong ({} problem{})", options.request.model,
                     result.problems.size(), result.problems.size() == 1 ? "" : "s");
  if (above) {
    return fail(ErrorCode::kDoesNotFit, "{}: {}", options.request.model, excess);
  }
  return {};
}

Action bind_check(Command& command) {
  auto options = std::make_shared<CheckOptions>();
  bind_model_options(command, options->request)
      .description("a plan, a schedule of `plan --dag`, or a model to plan on the spot");
  bind_plan_options(command, options->planning, options->request);
  bind_tf32(command, options->request);
  command.add_option("--max-peak", options->max_peak, "exit 4 when the peak is above this: 2GiB")
      .type_name("SIZE");
  command.add_flag("--json", options->json, "one JSON object");
  return [options, &command]() -> Status {
    PLIMSOLL_RETURN_IF_ERROR(refuse_words_beside_plan(command, options->request.model));
    return check(*options, command);
  };
}

}  // namespace

Verb check_verb() {
  return {"check", "the independent verifier, for a plan or for a model against a limit",
          kCheckExamples, bind_check};
}

}  // namespace plimsoll::cli
