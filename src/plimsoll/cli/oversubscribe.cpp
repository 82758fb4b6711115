#include <cstdio>
#include <memory>

#include <nlohmann/json.hpp>

#include "plimsoll/api/oversubscribe.h"
#include "plimsoll/base/json.h"
#include "plimsoll/base/output_file.h"
#include "plimsoll/cli/model_options.h"
#include "plimsoll/cli/plan_options.h"
#include "plimsoll/cli/search_progress.h"
#include "plimsoll/cli/verb.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kOversubscribeExamples =
    "Examples:\n"
    "  plimsoll oversubscribe alexnet --batch 4 --factors 1,1.5,2 -o curve.html\n"
    "  plimsoll oversubscribe gpt2 --batch 8 --device cuda --tf32 --svg gpt2.svg\n"
    "  plimsoll oversubscribe mlp --policies demand,belady,planned --json";

struct OversubscribeOptions {
  api::OversubscribeRequest request;
  std::string html;
  std::string svg;
  bool json = false;
};

std::string curves_json(const report::Oversubscription& curves) {
  nlohmann::ordered_json out{{"schema", 1},
                             {"model", curves.title},
                             {"device", curves.device},
                             {"arena_bytes", curves.arena.value},
                             {"plan_seconds", curves.plan_seconds},
                             {"unlimited_seconds", curves.free_seconds},
                             {"copy_rates",
                              {{"out_bytes_per_second", curves.out_rate},
                               {"in_bytes_per_second", curves.in_rate},
                               {"both_bytes_per_second", curves.both_rate}}}};
  out["points"] = nlohmann::ordered_json::array();
  for (const report::OversubscriptionPoint& point : curves.points) {
    nlohmann::ordered_json row{{"policy", point.policy},
                               {"factor", point.factor},
                               {"capacity_bytes", point.capacity.value},
                               {"model", point.model}};
    if (!point.refused.empty()) {
      row["refused"] = point.refused;
    } else {
      row["step_seconds"] = point.seconds;
      row["slowdown"] = point.slowdown;
      row["bound"] = point.bound;
      row["bytes_in"] = point.in.value;
      row["bytes_out"] = point.out.value;
      row["stall_seconds"] = point.stall_seconds;
      row["faults"] = point.faults;
      row["stalls"] = point.stalls;
      row["evictions"] = point.evictions;
      row["dead_evictions"] = point.dead_evictions;
      if (point.predicted_seconds > 0) {
        row["predicted_seconds"] = point.predicted_seconds;
        row["recomputed"] = point.recomputed;
        row["encoded_bytes"] = point.encoded.value;
      }
    }
    out["points"].push_back(std::move(row));
  }
  return json_text(out, 2);
}

Status write_picture(const std::string& path, const std::string& content) {
  if (path.empty()) return {};
  PLIMSOLL_TRY(OutputFile file, OutputFile::create(path));
  PLIMSOLL_RETURN_IF_ERROR(file.write(content));
  return file.commit();
}

Status oversubscribe_verb_action(OversubscribeOptions& options) {
  options.request.on_measuring = measuring_operators;
  options.request.on_point = [](const std::string& what) { progress_line(what); };
  PLIMSOLL_TRY(const report::Oversubscription curves, api::oversubscribe(options.request));
  progress_line("");
  PLIMSOLL_RETURN_IF_ERROR(write_picture(options.html, report::to_html(curves)));
  PLIMSOLL_RETURN_IF_ERROR(write_picture(options.svg, report::to_svg(curves)));
  std::printf("%s\n", options.json ? curves_json(curves).c_str() : report::to_text(curves).c_str());
  return {};
}

Action bind_oversubscribe(Command& command) {
  auto options = std::make_shared<OversubscribeOptions>();
  api::OversubscribeRequest& request = options->request;
  bind_model_options(command, request.model);
  bind_plan_options(command, request.planning, request.model, true);
  bind_tf32(command, request.model);
  command
      .add_option("--factors", request.factors,
                  "how many times too small: arena of the default plan / capacity (default "
                  "1,1.1,1.25,1.5,2,3)")
      .type_name("LIST");
  command
      .add_option("--policies", request.policies,
                  "a comma list of uvm (a model), demand, prefetch, pre-evict, belady, planned; "
                  "with +dead: nothing is forgotten (default all, and demand+dead)")
      .type_name("LIST");
  command.add_option("--steps", request.steps, "of every run (default 5)").between(2, 10000);
  command
      .add_option("--prefetch", request.prefetch,
                  "how many operators ahead operands are fetched (default 16)")
      .type_name("N")
      .between(1, 4096);
  command.add_output("-o,--output", options->html, "the curves as a page");
  command.add_output("--svg", options->svg, "the curves as SVG");
  command.add_flag("--json", options->json, "one JSON object");
  return [options, &command]() {
    if (!command.has("--device")) options->request.planning.device = api::kMeasured;
    return oversubscribe_verb_action(*options);
  };
}

}  // namespace

Verb oversubscribe_verb() {
  return {"oversubscribe", "runs a model in less memory than it needs, by every paging policy",
          kOversubscribeExamples, bind_oversubscribe};
}

}  // namespace plimsoll::cli
