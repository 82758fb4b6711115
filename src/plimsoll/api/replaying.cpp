#include "plimsoll/api/replaying.h"

#include <charconv>

#include <nlohmann/json.hpp>

#include "plimsoll/base/comma_list.h"
#include "plimsoll/base/file.h"
#include "plimsoll/trace/chrome_trace.h"
#include "plimsoll/trace/gzip.h"
#include "plimsoll/trace/pipeline_trace.h"
#include "plimsoll/trace/snapshot.h"
#include "plimsoll/trace/trace_file.h"

namespace plimsoll::api {
namespace {

constexpr std::string_view kPipeline = "pipeline:";
constexpr double kTimedSeconds = 0.2;

Result<trace::Trace> load(const std::string& name) {
  if (!name.starts_with(kPipeline)) return trace::read_any_trace(name);
  trace::PipelineOptions options;
  const std::string_view seed = std::string_view(name).substr(kPipeline.size());
  const auto parsed = std::from_chars(seed.data(), seed.data() + seed.size(), options.seed);
  if (parsed.ec != std::errc() || parsed.ptr != seed.data() + seed.size()) {
    return fail(ErrorCode::kUsage, "trace '{}': expected pipeline:SEED with a number", name);
  }
  return trace::make_pipeline_trace(options);
}

Result<std::vector<trace::Policy>> policies_of(std::string_view list) {
  if (list == "all") {
    return std::vector<trace::Policy>(trace::all_policies().begin(), trace::all_policies().end());
  }
  std::vector<trace::Policy> out;
  for (const std::string_view name : comma_list(list)) {
    PLIMSOLL_TRY(const trace::Policy policy, trace::policy_from(name));
    out.push_back(policy);
  }
  if (out.empty()) return fail(ErrorCode::kUsage, "allocator: the list is empty");
  return out;
}

}  // namespace

Result<ReplayReport> replay_trace(const ReplayRequest& request) {
  PLIMSOLL_TRY(const std::vector<trace::Policy> policies, policies_of(request.allocators));
  PLIMSOLL_TRY(const trace::Trace trace, load(request.trace));
  PLIMSOLL_TRY(const trace::ReplayProgram program, trace::compile_replay(trace));
  ReplayReport report;
  report.events = static_cast<std::int64_t>(trace.events.size());
  report.peak_live = program.peak_live;
  trace::ReplayOptions options;
  options.capacity = request.capacity;
  options.least_seconds = kTimedSeconds;
  for (const trace::Policy policy : policies) {
    report.outcomes.push_back(trace::replay(trace, program, policy, options));
    const std::string& violation = report.outcomes.back().order_violation;
    if (!violation.empty()) return fail(ErrorCode::kInternal, "replay: {}", violation);
    report.needed.push_back(report.outcomes.back().peak_reserved);
    if (report.outcomes.back().out_of_memory == 0) continue;
    report.needed.back() = trace::replay(trace, program, policy, {}).peak_reserved;
  }
  return report;
}

nlohmann::json to_json(const ReplayReport& report) {
  nlohmann::json allocators = nlohmann::json::array();
  for (std::size_t index = 0; index < report.outcomes.size(); ++index) {
    const trace::ReplayOutcome& outcome = report.outcomes[index];
    nlohmann::json entry = {{"name", trace::to_string(outcome.policy)},
                            {"model", outcome.policy != trace::Policy::kPlimsoll},
                            {"peak_reserved_bytes", outcome.peak_reserved.value},
                            {"overhead", outcome.overhead},
                            {"device_allocations", outcome.device_allocations},
                            {"pages_remapped", outcome.pages_remapped},
                            {"stream_waits", outcome.stream_waits},
                            {"ns_per_operation", outcome.ns_per_operation},
                            {"out_of_memory", outcome.out_of_memory}};
    if (outcome.out_of_memory > 0) {
      entry["first_failed_event"] = outcome.first_failed_event;
      entry["needed_bytes"] = report.needed[index].value;
    }
    if (!outcome.first_failure.empty()) entry["first_failure"] = outcome.first_failure;
    allocators.push_back(std::move(entry));
  }
  return {{"schema", 1},
          {"events", report.events},
          {"peak_live_bytes", report.peak_live.value},
          {"allocators", std::move(allocators)}};
}

Result<std::int64_t> convert_trace(const std::filesystem::path& from,
                                   const std::filesystem::path& to) {
  PLIMSOLL_TRY(const trace::Trace trace, trace::read_any_trace(from));
  const bool compress = to.extension() == ".gz";
  const std::string format = (compress ? to.stem() : to).extension().string();
  std::string text;
  if (format == ".jsonl") {
    text = trace::format_trace(trace);
  } else if (format == ".json") {
    text = trace::format_chrome_trace(trace);
  } else if (format == ".pickle" || format == ".pkl") {
    text = trace::format_snapshot(trace);
  } else {
    return fail(
        ErrorCode::kUsage,
        "{}: the name must end in .jsonl, .json (Chrome), .pickle (PyTorch), or one with .gz",
        to.string());
  }
  PLIMSOLL_RETURN_IF_ERROR(write_file(to, compress ? trace::gzip(text) : text));
  return static_cast<std::int64_t>(trace.events.size());
}

}  // namespace plimsoll::api
