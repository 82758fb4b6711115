#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

#include <nlohmann/json.hpp>

#include "plimsoll/api/diff.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/json.h"
#include "plimsoll/cli/model_options.h"
#include "plimsoll/cli/plan_options.h"
#include "plimsoll/cli/terminal.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kDiffExamples =
    "Examples:\n"
    "  plimsoll diff before.json after.json                  what grew, what shrank\n"
    "  plimsoll diff before.json after.json --threshold 1%   exit 4 when the peak grew by more\n"
    "  plimsoll diff main.json branch.json -o diff.html      the same as a report";

struct DiffOptions {
  api::SubjectOptions subject;
  std::string after;
  std::string threshold;
  api::ReportFiles files;
  bool json = false;
};

// "+1.20 GiB", right-aligned in `width`; what grew is red on a terminal, what shrank green.
std::string signed_human(Bytes bytes, int width = 0) {
  const std::string text = fmt::format(
      "{:>{}}", (bytes.value < 0 ? "-" : "+") + human(Bytes(std::llabs(bytes.value))), width);
  return bytes.value == 0 ? text
                          : inked(text, bytes.value > 0 ? Ink::kRed : Ink::kGreen, STDOUT_FILENO);
}

nlohmann::ordered_json row_json(const report::ComparedBytes& row) {
  return {{"name", row.name}, {"before", row.before.value}, {"after", row.after.value}};
}

std::string comparison_json(const report::Comparison& comparison) {
  nlohmann::ordered_json out{{"schema", 1},
                             {"total_before", comparison.total_before.value},
                             {"total_after", comparison.total_after.value}};
  out["by_kind"] = nlohmann::ordered_json::object();
  for (const report::ComparedBytes& row : comparison.by_kind) {
    out["by_kind"][row.name] = {{"before", row.before.value}, {"after", row.after.value}};
  }
  for (const char* key : {"by_layer", "by_tensor"}) {
    out[key] = nlohmann::ordered_json::array();
    for (const auto& row :
         key == std::string_view("by_layer") ? comparison.by_layer : comparison.by_tensor)
      out[key].push_back(row_json(row));
  }
  out["parts"] = nlohmann::ordered_json::array();
  for (const report::Part& part : comparison.parts)
    out["parts"].push_back(
        {{"name", part.name}, {"bytes", part.bytes.value}, {"detail", part.detail}});
  return json_text(out, 2);
}

void print_rows(const char* title, const std::vector<report::ComparedBytes>& rows,
                std::size_t most) {
  std::printf("%s\n", title);
  std::size_t shown = 0;
  for (const report::ComparedBytes& row : rows) {
    if (row.growth().value == 0) continue;
    if (++shown > most) break;
    std::printf("  %s  %10s -> %-10s  %s\n", signed_human(row.growth(), 12).c_str(),
                human(row.before).c_str(), human(row.after).c_str(), row.name.c_str());
  }
  if (shown == 0) std::printf("  no change\n");
}

void print(const report::Comparison& comparison) {
  std::printf("peak %s -> %s  (%s, %s bytes)\n", human(comparison.total_before).c_str(),
              human(comparison.total_after).c_str(), signed_human(comparison.growth()).c_str(),
              grouped(comparison.growth().value).c_str());
  for (const report::Part& part : comparison.parts) {
    if (part.bytes.value != 0)
      std::printf("  %s  %s (%s)\n", signed_human(part.bytes, 12).c_str(), part.name.c_str(),
                  part.detail.c_str());
  }
  print_rows("by kind:", comparison.by_kind, 20);
  print_rows("by layer:", comparison.by_layer, 12);
  print_rows("by tensor:", comparison.by_tensor, 12);
}

Status diff(DiffOptions& options, Command& command) {
  PLIMSOLL_TRY(const report::Report report,
               api::diff_report(options.subject.model.model, options.after, options.subject));
  const report::Comparison& comparison = *report.comparison;
  std::optional<Bytes> limit;
  if (!options.threshold.empty()) {
    PLIMSOLL_TRY(limit, api::parse_threshold(options.threshold, comparison.total_before));
  }
  PLIMSOLL_TRY([[maybe_unused]] const auto written, api::write_report(report, options.files));
  if (options.json) {
    command.answer(comparison_json(comparison));
  } else {
    print(comparison);
  }
  if (limit && comparison.growth() > *limit) {
    return fail(ErrorCode::kDoesNotFit, "the peak grew by {}, more than the threshold of {} ({})",
                human(comparison.growth()), options.threshold, human(*limit));
  }
  return {};
}

Action bind_diff(Command& command) {
  auto options = std::make_shared<DiffOptions>();
  bind_model_options(command, options->subject.model)
      .description("before: a plan, a trace, a snapshot or a model");
  command.add_option("AFTER", options->after, "after: the same").required();
  bind_plan_options(command, options->subject.planning, options->subject.model);
  command.add_output("-o,--output", options->files.html, "write the comparison as a report too");
  command
      .add_option("--threshold", options->threshold, "exit 4 when the peak grew by more: 1%, 64MiB")
      .type_name("SIZE");
  command.add_flag("--json", options->json, "one JSON object");
  return [options, &command]() -> Status {
    PLIMSOLL_RETURN_IF_ERROR(
        refuse_words_beside_plans(command, {options->after, options->subject.model.model}));
    return diff(*options, command);
  };
}

}  // namespace

Verb diff_verb() {
  return {"diff", "what grew and what shrank between two plans, traces or models", kDiffExamples,
          bind_diff};
}

}  // namespace plimsoll::cli
