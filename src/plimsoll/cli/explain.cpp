#include <algorithm>
#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>

#include "plimsoll/api/explain.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/json.h"
#include "plimsoll/cli/model_options.h"
#include "plimsoll/cli/plan_options.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kExplainExamples =
    "Examples:\n"
    "  plimsoll explain plan.json                          what is alive at the peak, and why\n"
    "  plimsoll explain plan.json --at 42                  at a step\n"
    "  plimsoll explain gpt2 --tensor transformer/add      one tensor of a model planned on the "
    "spot";

struct ExplainOptions {
  api::SubjectOptions subject;
  std::string at;
  std::string tensor;
  std::size_t rows = 20;
  bool json = false;
};

std::string operator_name(const report::Timeline& timeline, std::int32_t index) {
  return index < 0 ? std::string()
                   : timeline.texts.text(timeline.operators[static_cast<std::size_t>(index)].name);
}

nlohmann::ordered_json row_json(const report::Timeline& timeline, const report::AliveRow& row) {
  const report::Allocation& allocation = timeline.allocations[row.allocation];
  nlohmann::ordered_json out{{"name", timeline.texts.text(allocation.name)},
                             {"bytes", allocation.bytes.value}};
  out["kind"] = report::name(allocation.kind);
  out["type"] = timeline.texts.text(allocation.type);
  out["layer"] = timeline.texts.text(allocation.layer);
  out["first_step"] = allocation.life.begin.value;
  out["end_step"] = allocation.life.end.value;
  out["producer"] = operator_name(timeline, allocation.producer);
  out["last_reader"] = operator_name(timeline, allocation.last_reader);
  out["why"] = row.why;
  out["remedies"] = nlohmann::ordered_json::array();
  for (const report::Price& price : row.prices) {
    out["remedies"].push_back({{"remedy", price.remedy},
                               {"saves_bytes", price.saves.value},
                               {"seconds", price.seconds},
                               {"lossless", price.lossless},
                               {"detail", price.detail}});
  }
  return out;
}

void print_json(const api::Explanation& explanation) {
  nlohmann::ordered_json out{{"schema", 1},
                             {"at_step", explanation.step.value},
                             {"alive_bytes", explanation.alive.value},
                             {"peak_bytes", explanation.peak.value}};
  out["alive"] = nlohmann::ordered_json::array();
  for (const report::AliveRow& row : explanation.rows)
    out["alive"].push_back(row_json(explanation.timeline, row));
  std::printf("%s\n", json_text(out, 2).c_str());
}

// Kind, name and type. What a recording has no name for is known by its event.
std::string what(const report::Timeline& timeline, const report::Allocation& allocation) {
  const std::string kind(report::name(allocation.kind));
  std::string name = timeline.texts.text(allocation.name);
  if (allocation.kind == report::Kind::kBefore) return name;
  if (name == report::kUnnamed)
    return fmt::format("allocated at event {}", grouped(allocation.life.begin.value));
  const std::string& type = timeline.texts.text(allocation.type);
  return fmt::format("{:<11} {}{}{}", kind, name, type.empty() ? "" : "  ", type);
}

void print_row(const report::Timeline& timeline, const report::AliveRow& row) {
  const report::Allocation& allocation = timeline.allocations[row.allocation];
  std::printf("%10s  %s\n", human(allocation.bytes).c_str(), what(timeline, allocation).c_str());
  const std::string producer = operator_name(timeline, allocation.producer);
  std::printf("%10s  %s%s%s\n", "", producer.empty() ? "" : ("made by " + producer + "; ").c_str(),
              row.why.c_str(), row.prices.empty() ? "" : "; instead:");
  for (const report::Price& price : row.prices) {
    std::printf("%10s    %-14s saves %-10s costs %-8s %s\n", "", label_of(price).c_str(),
                human(price.saves).c_str(), human_seconds(price.seconds).c_str(),
                price.detail.c_str());
  }
}

void print(const api::Explanation& explanation, std::size_t most) {
  const report::Timeline& timeline = explanation.timeline;
  std::printf("%s %s of %s: %s alive (%s bytes)", timeline.source == "plan" ? "step" : "event",
              grouped(explanation.step.value).c_str(), grouped(timeline.time_steps()).c_str(),
              human(explanation.alive).c_str(), grouped(explanation.alive.value).c_str());
  std::printf("%s\n", explanation.alive == explanation.peak
                          ? ", the peak"
                          : fmt::format("; the peak is {}", human(explanation.peak)).c_str());
  Bytes rest;
  for (std::size_t r = 0; r < explanation.rows.size(); ++r) {
    if (r < most) {
      print_row(timeline, explanation.rows[r]);
    } else {
      rest += timeline.allocations[explanation.rows[r].allocation].bytes;
    }
  }
  if (explanation.rows.size() > most)
    std::printf("%10s  in %zu smaller ones (--rows shows more)\n", human(rest).c_str(),
                explanation.rows.size() - most);
}

Action bind_explain(Command& command) {
  auto options = std::make_shared<ExplainOptions>();
  bind_model_options(command, options->subject.model)
      .description(
          "a plan, a schedule of `plan --dag`, a trace, a snapshot, or a model to plan on the "
          "spot");
  bind_plan_options(command, options->subject.planning, options->subject.model);
  command.add_option("--at", options->at, "peak (default) or the number of a step")
      .type_name("peak|STEP");
  command
      .add_option("--tensor", options->tensor, "only this one, at the fullest moment of its life")
      .type_name("NAME");
  command.add_option("--rows", options->rows, "how many to print (default 20)").not_negative();
  command.add_flag("--json", options->json, "one JSON object, with all rows");
  return [options, &command]() -> Status {
    PLIMSOLL_RETURN_IF_ERROR(refuse_words_beside_plans(command, {options->subject.model.model}));
    PLIMSOLL_TRY(
        const api::Explanation explanation,
        api::explain(options->subject.model.model, options->subject, options->at, options->tensor));
    if (options->json) {
      print_json(explanation);
    } else {
      print(explanation, options->rows);
    }
    return {};
  };
}

}  // namespace

Verb explain_verb() {
  return {"explain", "what is alive at the peak, why, and the price of removing it",
          kExplainExamples, bind_explain};
}

}  // namespace plimsoll::cli
