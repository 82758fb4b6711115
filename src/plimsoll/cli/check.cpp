#include <unistd.h>

#include <cstdio>
#include <memory>

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

Status check(const CheckOptions& options, Command& command) {
  std::optional<Bytes> limit;
  if (!options.max_peak.empty()) {
    PLIMSOLL_TRY(limit, parse_byte_size(options.max_peak));
  }
  PLIMSOLL_TRY(const api::CheckReport result,
               api::check_model_or_plan(options.request, options.planning));
  const bool ok = result.problems.empty();
  const bool above = limit && result.peak > *limit;
  if (options.json) {
    const nlohmann::ordered_json out{{"schema", 1},
                                     {"ok", ok},
                                     {"peak_bytes", result.peak.value},
                                     {"problems", result.problems}};
    command.answer(json_text(out, 2));
  } else {
    for (const std::string& problem : result.problems) std::printf("%s\n", problem.c_str());
    const std::string verdict =
        !ok     ? inked("WRONG", Ink::kRed, STDOUT_FILENO)
        : above ? inked("ABOVE THE LIMIT", Ink::kRed, STDOUT_FILENO) + " of " + human(*limit)
        : limit ? "right, within the limit of " + human(*limit)
                : "right";
    std::printf("%s: %s, peak %s (%s bytes)\n", options.request.model.c_str(), verdict.c_str(),
                human(result.peak).c_str(), grouped(result.peak.value).c_str());
  }
  if (!ok)
    return bad_input("{}: the plan is wrong ({} problem{})", options.request.model,
                     result.problems.size(), result.problems.size() == 1 ? "" : "s");
  if (above) {
    return fail(ErrorCode::kDoesNotFit, "{}: peak {} is above the limit of {}",
                options.request.model, human(result.peak), human(*limit));
  }
  return {};
}

Action bind_check(Command& command) {
  auto options = std::make_shared<CheckOptions>();
  bind_model_options(command, options->request)
      .description("a plan, a schedule of `plan --dag`, or a model to plan on the spot");
  bind_plan_options(command, options->planning);
  command.add_option("--max-peak", options->max_peak, "exit 4 when the peak is above this: 2GiB")
      .type_name("SIZE");
  command.add_flag("--json", options->json, "one JSON object");
  return [options, &command]() { return check(*options, command); };
}

}  // namespace

Verb check_verb() {
  return {"check", "the independent verifier, for a plan or for a model against a limit",
          kCheckExamples, bind_check};
}

}  // namespace plimsoll::cli
