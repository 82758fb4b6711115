#include "plimsoll/trace/replay_file.h"

#include <charconv>

#include <nlohmann/json.hpp>

#include "plimsoll/base/comma_list.h"
#include "plimsoll/base/file.h"
#include "plimsoll/trace/chrome_trace.h"
#include "plimsoll/trace/gzip.h"
#include "plimsoll/trace/pipeline_trace.h"
#include "plimsoll/trace/replay.h"
#include "plimsoll/trace/snapshot.h"
#include "plimsoll/trace/trace_file.h"

namespace plimsoll::trace {
namespace {

constexpr std::string_view kPipeline = "pipeline:";
constexpr double kTimedSeconds = 0.2;

Result<Trace> load(const std::string& name) {
  if (!name.starts_with(kPipeline)) return read_any_trace(name);
  PipelineOptions options;
  const std::string_view seed = std::string_view(name).substr(kPipeline.size());
  const auto parsed = std::from_chars(seed.data(), seed.data() + seed.size(), options.seed);
  if (parsed.ec != std::errc() || parsed.ptr != seed.data() + seed.size()) {
    return fail(ErrorCode::kUsage, "trace '{}': expected pipeline:SEED with a number", name);
  }
  return make_pipeline_trace(options);
}

Result<std::vector<Policy>> policies_of(std::string_view list) {
  if (list == "all") {
    return std::vector<Policy>(all_policies().begin(), all_policies().end());
  }
  std::vector<Policy> out;
  for (const std::string_view name : comma_list(list)) {
    PLIMSOLL_TRY(const Policy policy, policy_from(name));
    out.push_back(policy);
  }
  if (out.empty()) return fail(ErrorCode::kUsage, "allocator: the list is empty");
  return out;
}

ReplayRow row_of(const ReplayOutcome& outcome) {
  return {std::string(to_string(outcome.policy)),
          outcome.policy != Policy::kPlimsoll,
          outcome.peak_reserved,
          outcome.overhead,
          outcome.device_allocations,
          outcome.pages_remapped,
          outcome.stream_waits,
          outcome.ns_per_operation,
          outcome.out_of_memory,
          outcome.first_failed_event,
          outcome.first_failure,
          outcome.peak_reserved};
}

}  // namespace

Result<ReplayReport> replay_trace(const ReplayRequest& request) {
  PLIMSOLL_TRY(const std::vector<Policy> policies, policies_of(request.allocators));
  PLIMSOLL_TRY(const Trace trace, load(request.trace));
  PLIMSOLL_TRY(const ReplayProgram program, compile_replay(trace));
  ReplayReport report;
  report.events = static_cast<std::int64_t>(trace.events.size());
  report.peak_live = program.peak_live;
  ReplayOptions options;
  options.capacity = request.capacity;
  options.least_seconds = kTimedSeconds;
  for (const Policy policy : policies) {
    const ReplayOutcome outcome = replay(trace, program, policy, options);
    if (!outcome.order_violation.empty())
      return fail(ErrorCode::kInternal, "replay: {}", outcome.order_violation);
    report.rows.push_back(row_of(outcome));
    if (outcome.out_of_memory == 0) continue;
    // What was refused was never alive: only what the allocator takes without a limit can be
    // compared with what was.
    const ReplayOutcome unlimited = replay(trace, program, policy, {});
    report.rows.back().needed = unlimited.peak_reserved;
    report.rows.back().overhead = unlimited.overhead;
  }
  return report;
}

nlohmann::json to_json(const ReplayReport& report) {
  nlohmann::json allocators = nlohmann::json::array();
  for (const ReplayRow& row : report.rows) {
    nlohmann::json entry = {{"name", row.name},
                            {"model", row.model},
                            {"peak_reserved_bytes", row.peak_reserved.value},
                            {"overhead", row.overhead},
                            {"device_allocations", row.device_allocations},
                            {"pages_remapped", row.pages_remapped},
                            {"stream_waits", row.stream_waits},
                            {"ns_per_operation", row.ns_per_operation},
                            {"out_of_memory", row.out_of_memory}};
    if (row.out_of_memory > 0) {
      // null: a block that was there before the first event did not fit
      entry["first_failed_event"] =
          row.first_failed_event < 0 ? nlohmann::json() : nlohmann::json(row.first_failed_event);
      entry["needed_bytes"] = row.needed.value;
    }
    if (!row.first_failure.empty()) entry["first_failure"] = row.first_failure;
    allocators.push_back(std::move(entry));
  }
  return {{"schema", 1},
          {"events", report.events},
          {"peak_live_bytes", report.peak_live.value},
          {"allocators", std::move(allocators)}};
}

Result<std::int64_t> convert_trace(const std::filesystem::path& from,
                                   const std::filesystem::path& to) {
  PLIMSOLL_TRY(const Trace trace, read_any_trace(from));
  const bool compress = to.extension() == ".gz";
  const std::string format = (compress ? to.stem() : to).extension().string();
  std::string text;
  if (format == ".jsonl") {
    text = format_trace(trace);
  } else if (format == ".json") {
    text = format_chrome_trace(trace);
  } else if (format == ".pickle" || format == ".pkl") {
    text = format_snapshot(trace);
  } else {
    return fail(
        ErrorCode::kUsage,
        "{}: the name must end in .jsonl, .json (Chrome), .pickle (PyTorch), or one with .gz",
        to.string());
  }
  PLIMSOLL_RETURN_IF_ERROR(write_file(to, compress ? gzip(text) : text));
  return static_cast<std::int64_t>(trace.events.size());
}

}  // namespace plimsoll::trace
