#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>

#include "plimsoll/api/view.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/json.h"
#include "plimsoll/cli/model_options.h"
#include "plimsoll/cli/plan_options.h"
#include "plimsoll/cli/search_progress.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kViewExamples =
    "Examples:\n"
    "  plimsoll view plan.json -o report.html              one file, opens offline\n"
    "  plimsoll view plan.json run.jsonl -o report.html    planned against measured\n"
    "  plimsoll view run.0.jsonl run.1.jsonl               ranks of one run side by side\n"
    "  plimsoll view snapshot.pickle.gz -o report.html     where did PyTorch's memory go?\n"
    "  plimsoll view snapshot.pickle.gz --in-use 18.2GiB   what nvidia-smi showed: the rest is "
    "outside the allocator\n"
    "  plimsoll view sweep.json --png curve.png            the curve of `plimsoll plan MODEL "
    "--sweep -o sweep.json`\n"
    "  plimsoll view gpt2 --batch 4 --png timeline.png     plan a model and draw it";

struct ViewOptions {
  api::SubjectOptions subject;
  std::vector<std::string> more;
  api::ReportFiles files;
  std::string capacity;
  std::string in_use;
  bool json = false;
};

nlohmann::ordered_json finding_json(const report::Chapter& chapter) {
  const report::Diagnosis& diagnosis = chapter.diagnosis;
  nlohmann::ordered_json replayed = nlohmann::ordered_json::array();
  for (const report::AllocatorFigure& figure : diagnosis.replayed) {
    replayed.push_back({{"name", figure.name},
                        {"model", figure.model},
                        {"peak_reserved_bytes", figure.reserved.value}});
  }
  return {{"title", chapter.timeline.title},
          {"headline", diagnosis.headline},
          {"advice", diagnosis.advice},
          {"events", chapter.timeline.events},
          {"peak_live_bytes", diagnosis.alive.value},
          {"reserved_bytes", diagnosis.reserved.value},
          {"allocators", std::move(replayed)}};
}

void print_findings(const report::Report& report) {
  for (const report::Chapter& chapter : report.chapters) {
    const std::string title = report.chapters.size() > 1 ? chapter.timeline.title + ": " : "";
    std::printf("%s%s\n", title.c_str(), chapter.diagnosis.headline.c_str());
    for (const std::string& advice : chapter.diagnosis.advice)
      std::printf("  - %s\n", advice.c_str());
  }
}

Status view(ViewOptions& options) {
  if (options.files.html.empty() && options.files.svg.empty() && options.files.png.empty())
    options.files.html = "report.html";
  for (const auto& [text, bytes] : {std::pair(&options.capacity, &options.subject.facts.capacity),
                                    std::pair(&options.in_use, &options.subject.facts.in_use)}) {
    if (text->empty()) continue;
    PLIMSOLL_TRY(*bytes, parse_byte_size(*text));
  }
  options.subject.diagnose = true;
  std::vector<std::string> names{options.subject.model.model};
  names.insert(names.end(), options.more.begin(), options.more.end());
  auto waiting = waiting_on_terminal("making the report");
  PLIMSOLL_TRY(const report::Report report, api::make_report(names, options.subject));
  PLIMSOLL_TRY(const std::vector<api::WrittenFile> written,
               api::write_report(report, options.files));
  waiting.reset();
  if (options.json) {
    nlohmann::ordered_json out{
        {"schema", 1}, {"path", written.front().path}, {"bytes", written.front().bytes}};
    out["files"] = nlohmann::ordered_json::array();
    for (const api::WrittenFile& file : written)
      out["files"].push_back({{"path", file.path}, {"bytes", file.bytes}});
    out["findings"] = nlohmann::ordered_json::array();
    for (const report::Chapter& chapter : report.chapters)
      out["findings"].push_back(finding_json(chapter));
    std::printf("%s\n", json_text(out, 2).c_str());
    return {};
  }
  print_findings(report);
  for (const api::WrittenFile& file : written) {
    std::printf("%s  %s\n", file.path.c_str(),
                human(Bytes(static_cast<std::int64_t>(file.bytes))).c_str());
  }
  return {};
}

Action bind_view(Command& command) {
  auto options = std::make_shared<ViewOptions>();
  bind_model_options(command, options->subject.model)
      .description(
          "a plan, a schedule of `plan --dag`, a trace, a PyTorch snapshot, a sweep, or a model to "
          "plan on the spot");
  command.add_option(
      "MORE", options->more,
      "more files: the trace of a plan's run, an older plan, a sweep, traces of other ranks");
  bind_plan_options(command, options->subject.planning, options->subject.model);
  command.add_output("-o,--output", options->files.html, "the report (default report.html)");
  command.add_output("--svg", options->files.svg, "the timeline (of a sweep: the curve) as SVG");
  command.add_output("--png", options->files.png, "the same as PNG");
  command
      .add_option("--capacity", options->capacity,
                  "of the device a snapshot was taken on: drawn as a line")
      .type_name("SIZE")
      .group("Snapshots");
  command
      .add_option("--in-use", options->in_use,
                  "what the device showed as used at its fullest; what the allocator did not hold "
                  "is drawn as an allocation of its own")
      .type_name("SIZE")
      .group("Snapshots");
  command.add_flag("--json", options->json, "one JSON object");
  return [options, &command]() -> Status {
    std::vector<std::string> subjects = options->more;
    subjects.push_back(options->subject.model.model);
    PLIMSOLL_RETURN_IF_ERROR(refuse_words_beside_plans(command, subjects));
    return view(*options);
  };
}

}  // namespace

Verb view_verb() {
  return {"view", "the report: see every byte of a plan, a trace or a PyTorch snapshot",
          kViewExamples, bind_view};
}

}  // namespace plimsoll::cli
