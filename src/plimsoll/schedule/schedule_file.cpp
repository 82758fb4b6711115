#include "plimsoll/schedule/schedule_file.h"

#include <array>
#include <cmath>
#include <unordered_map>

#include <nlohmann/json.hpp>

#include "plimsoll/base/json.h"
#include "plimsoll/base/utf8.h"
#include "plimsoll/schedule/workload/dag_file.h"

namespace plimsoll::schedule {
namespace {

using nlohmann::json;

constexpr const char* kScheduleKind = "plimsoll schedule";
constexpr std::array<std::string_view, 7> kStepNames = {
    "compute", "drop", "drop_encoded", "send_out", "bring_in", "encode", "decode"};
constexpr double kMostBytes = 9e18;

std::optional<FileStep::Kind> step_kind_named(std::string_view name) {
  for (std::size_t kind = 0; kind < kStepNames.size(); ++kind) {
    if (kStepNames[kind] == name) return static_cast<FileStep::Kind>(kind);
  }
  return std::nullopt;
}

json steps_of(const Workload& workload, const Schedule& schedule) {
  json steps = json::array();
  for (const Action& action : schedule.actions) {
    if (action.task.valid()) {
      steps.push_back({{"compute", workload.task(action.task).name}});
      // What an output took over is gone, though no action says so.
      for (InstanceId id : action.writes) {
        const InstanceId old = schedule.instances[id.index()].takes_over;
        if (old.valid())
          steps.push_back({{"drop", workload.value(schedule.instances[old.index()].value).name}});
      }
      continue;
    }
    const Instance& instance = schedule.instances[action.reads.front().index()];
    const Value& value = workload.value(instance.value);
    if (action.kind != ActionKind::kDrop) {
      steps.push_back({{std::string(name_of(action.kind)), value.name}});
      if (action.kind == ActionKind::kEncode && value.encodings.size() > 1)
        steps.back()["encoding"] = schedule.instances[action.writes.front().index()].encoding;
    } else if (instance.form != Form::kHost) {
      steps.push_back({{instance.form == Form::kEncoded ? "drop_encoded" : "drop", value.name}});
    }
  }
  return steps;
}

class ScheduleReader {
 public:
  Result<ScheduleFile> read(const json& file) {
    if (!file.is_object() || !file.contains("nodes") || !file.contains("steps"))
      return bad_input(
          "a schedule file is an object with `nodes` and `steps`; one without `nodes` was written "
          "by an earlier version: plan the graph again");
    PLIMSOLL_TRY(out_.workload, read_dag_tree(json{{"nodes", file["nodes"]}}));
    for (std::size_t v = 0; v < out_.workload.values.size(); ++v)
      place_.emplace(out_.workload.values[v].name, v);
    PLIMSOLL_TRY(out_.peak, bytes_at(file, "peak_bytes"));
    PLIMSOLL_TRY(out_.host_peak, bytes_at(file, "host_peak_bytes"));
    if (file.contains("budget_bytes")) {
      PLIMSOLL_TRY(out_.budget, bytes_at(file, "budget_bytes"));
    }
    const auto seconds = file.find("seconds");
    if (seconds == file.end() || !seconds->is_number() || !std::isfinite(seconds->get<double>()))
      return bad_input("`seconds` must be a finite number");
    out_.seconds = seconds->get<double>();
    if (!file["steps"].is_array()) return bad_input("`steps` must be an array");
    for (const json& step : file["steps"]) PLIMSOLL_RETURN_IF_ERROR(read_step(step));
    return std::move(out_);
  }

 private:
  static Result<Bytes> bytes_at(const json& file, const char* key) {
    const auto found = file.find(key);
    const double amount = found != file.end() && found->is_number() ? found->get<double>() : -1;
    if (!(amount >= 0) || amount > kMostBytes || !found->is_number_integer())
      return bad_input("`{}` must be a number of bytes", key);
    return Bytes(found->get<std::int64_t>());
  }

  Status read_step(const json& step) {
    const std::size_t at = out_.steps.size();
    FileStep read;
    bool named = false;
    if (!step.is_object()) return bad_input("step {}: must be an object", at);
    for (const auto& [key, value] : step.items()) {
      if (key == "encoding") {
        if (!value.is_number_unsigned() || value.get<std::uint64_t>() > 63)
          return bad_input("step {}: `encoding` must be a small whole number", at);
        read.encoding = value.get<std::uint8_t>();
        continue;
      }
      const auto kind = step_kind_named(key);
      if (!kind || named || !value.is_string())
        return bad_input(
            "step {}: expected one of compute, drop, drop_encoded, send_out, bring_in, "
            "encode, decode with the name of a node, got `{}`",
            at, excerpt(key));
      const auto found = place_.find(value.get_ref<const std::string&>());
      if (found == place_.end())
        return bad_input("step {}: there is no node '{}'", at,
                         excerpt(value.get_ref<const std::string&>()));
      read.kind = *kind;
      read.value = ValueId(found->second);
      named = true;
    }
    if (!named) return bad_input("step {}: says nothing", at);
    out_.steps.push_back(read);
    return {};
  }

  ScheduleFile out_;
  std::unordered_map<std::string, std::size_t> place_;
};

}  // namespace

std::string_view name_of(FileStep::Kind kind) {
  return kStepNames[static_cast<std::size_t>(kind)];
}

std::string schedule_to_json(const Workload& workload, const Schedule& schedule,
                             std::optional<Bytes> budget, double cost_unit) {
  json file{{"schema", 1},
            {"kind", kScheduleKind},
            {"peak_bytes", schedule.peak_bytes.value},
            {"host_peak_bytes", schedule.host_peak_bytes.value},
            {"seconds", schedule.seconds * cost_unit},
            {"nodes", dag_nodes(workload, cost_unit)},
            {"steps", steps_of(workload, schedule)}};
  if (budget) file["budget_bytes"] = budget->value;
  return json_text(file, 1) + "\n";
}

bool looks_like_schedule(std::string_view text) {
  return text.find(fmt::format("\"{}\"", kScheduleKind)) != std::string_view::npos;
}

Result<ScheduleFile> read_schedule(std::string_view text) {
  PLIMSOLL_TRY(const json file, parse_json(text, kDagLimits));
  return ScheduleReader().read(file);
}

}  // namespace plimsoll::schedule
