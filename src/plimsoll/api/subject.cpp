#include "plimsoll/api/subject.h"

#include <filesystem>

#include "plimsoll/api/file_kind.h"
#include "plimsoll/api/machine_profile.h"
#include "plimsoll/api/pipeline.h"
#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/file.h"
#include "plimsoll/pack/pack.h"
#include "plimsoll/plan/check_plan.h"
#include "plimsoll/plan/plan_file.h"
#include "plimsoll/profile/find_profile.h"
#include "plimsoll/report/timeline_of_plan.h"
#include "plimsoll/report/timeline_of_schedule.h"
#include "plimsoll/trace/snapshot.h"

namespace plimsoll::api {
namespace {

bool is_model(const std::filesystem::path& path) {
  return path.extension() == ".onnx" || path.extension() == ".graph" ||
         !std::filesystem::is_regular_file(path);
}

Result<Subject> read_plan(std::string_view text, const std::string& name,
                          const std::string& title) {
  auto plan = plan::parse_plan(text);
  if (!plan) return forward(plan, name);
  const plan::PlanCheck check = plan::check_plan(*plan);
  if (!check.ok()) return bad_input("{}: the plan is wrong: {}", name, check.problems.front());
  Subject out;
  out.timeline = report::timeline_of(*plan, title);
  out.plan = std::move(*plan);
  return out;
}

// The offsets that the drawing needs; a schedule has none.
Result<std::vector<Offset>> places_of(const schedule::ScheduleReplay& replay) {
  constexpr double kPackSeconds = 0.5;  // counted
  pack::Problem problem;
  std::vector<std::size_t> on_device;
  for (std::size_t h = 0; h < replay.held.size(); ++h) {
    const schedule::HeldValue& held = replay.held[h];
    if (held.form == schedule::Form::kHost) continue;
    on_device.push_back(h);
    problem.buffers.push_back(
        {.lifetime = {held.life.begin.value, held.life.end.value}, .size = held.bytes});
  }
  pack::PackOptions how;
  how.deterministic = true;
  how.deadline_seconds = kPackSeconds;
  PLIMSOLL_TRY(const pack::Packing packing, pack::pack(problem, how));
  std::vector<Offset> out(replay.held.size(), Offset(0));
  for (std::size_t b = 0; b < on_device.size(); ++b) out[on_device[b]] = packing.offsets[b];
  // Host copies one behind the other: nobody packs them.
  std::int64_t host = 0;
  for (std::size_t h = 0; h < replay.held.size(); ++h) {
    if (replay.held[h].form != schedule::Form::kHost) continue;
    out[h] = Offset(host);
    host += replay.held[h].bytes.value;
  }
  return out;
}

Result<Subject> read_dag_schedule(std::string_view text, const std::string& name,
                                  const std::string& title) {
  auto file = schedule::read_schedule(text);
  if (!file) return forward(file, name);
  schedule::ScheduleReplay replay = schedule::replay_schedule(*file);
  if (!replay.ok())
    return bad_input("{}: the schedule is wrong: {}", name, replay.problems.front());
  PLIMSOLL_TRY(const std::vector<Offset> places, places_of(replay));
  Subject out;
  out.timeline = report::timeline_of(*file, replay, places, title);
  out.dag_schedule = DagSchedule{std::move(*file), std::move(replay)};
  return out;
}

}  // namespace

std::vector<report::AliveRow> Subject::alive_at(Step step) const {
  if (plan) return report::alive_at(timeline, step, *plan, profile);
  if (dag_schedule)
    return report::alive_at(timeline, step, dag_schedule->file, dag_schedule->replay,
                            profile.copies);
  return report::alive_at(timeline, step);
}

std::string title_of(const plan::Plan& plan) {
  std::string out = plan.graph.name.empty() ? "a graph without a name" : plan.graph.name;
  for (const ir::Value& value : plan.graph.values) {
    if (value.kind != ir::ValueKind::kInput || value.type.shape.rank() == 0) continue;
    out += fmt::format(", batch {}", value.type.shape[0]);
    break;
  }
  return out +
         (plan.budget.value > 0 ? fmt::format(", budget {}", human(plan.budget)) : ", no budget");
}

Result<Subject> read_subject(const std::string& name, const SubjectOptions& options) {
  const std::string title = std::filesystem::path(name).filename().string();
  PLIMSOLL_TRY(PlanOptions planning, plan_options(options.planning));
  Subject out;
  if (is_model(name)) {
    // A path that is no file should be called missing, not an unknown model.
    if (name.find('/') != std::string::npos || name.ends_with(".json") ||
        name.ends_with(".jsonl") || name.ends_with(".gz")) {
      PLIMSOLL_TRY([[maybe_unused]] const MappedFile present, MappedFile::open(name));
    }
    Pipeline p;
    p.request = options.model;
    p.request.model = name;
    p.device = options.planning.device;
    p.planning = std::move(planning);
    PLIMSOLL_RETURN_IF_ERROR(advance(p, Stage::kPlanned));
    out.timeline = report::timeline_of(p.planned.plan, title);
    out.plan = std::move(p.planned.plan);
    out.profile = std::move(p.profile);
    return out;
  } else {
    PLIMSOLL_TRY(const MappedFile file, MappedFile::open(name));
    if (plan::looks_like_plan(file.text())) {
      PLIMSOLL_TRY(out, read_plan(file.text(), name, title));
    } else if (schedule::looks_like_schedule(file.text())) {
      PLIMSOLL_TRY(out, read_dag_schedule(file.text(), name, title));
    } else {
      const auto trace = trace::read_any_trace(name);
      if (!trace) return tl::unexpected<Error>(naming_kind(trace.error(), name, "plan or trace"));
      out.timeline = report::timeline_of(*trace, title, options.facts);
      if (options.diagnose) out.diagnosis = report::diagnose(out.timeline, *trace);
    }
  }
  if (options.planning.device == "cpu" && out.plan) {
    PLIMSOLL_TRY(out.profile, profile_of_cpu(options.model));
  } else {
    PLIMSOLL_TRY(out.profile, profile::find_profile(options.planning.device));
  }
  return out;
}

}  // namespace plimsoll::api
