// What a user names, as a timeline of memory: a plan, the schedule of a DAG, a trace in any format
// that we read, or a MODEL that is planned on the spot. `view`, `diff` and `explain` all begin
// here.
//
// A file's content decides what it is, not its name (only `.onnx` and `.graph` are models by name).
// A plan is checked before anybody draws it.
#pragma once

#include <optional>
#include <string>

#include "plimsoll/api/model_options.h"
#include "plimsoll/api/plan_request.h"
#include "plimsoll/base/result.h"
#include "plimsoll/plan/plan.h"
#include "plimsoll/report/diagnosis.h"
#include "plimsoll/report/timeline_of_trace.h"
#include "plimsoll/report/why_alive.h"
#include "plimsoll/schedule/device_profile.h"
#include "plimsoll/schedule/replay_schedule.h"

namespace plimsoll::api {

// How to plan where a MODEL is named instead of a file, and how to read a trace.
struct SubjectOptions {
  ModelRequest model;
  PlanRequest planning;
  report::TraceFacts facts;  // what a recording does not say of its device
  bool diagnose = false;     // replays a recording on other allocators, for a few seconds at most
};

// A schedule of a DAG, and what its replay found.
struct DagSchedule {
  schedule::ScheduleFile file;
  schedule::ScheduleReplay replay;
};

struct Subject {
  report::Timeline timeline;
  std::optional<plan::Plan> plan;  // absent for a trace
  std::optional<DagSchedule> dag_schedule;
  report::Diagnosis diagnosis;  // of a trace, where it was asked for
  schedule::DeviceProfile profile;

  // Everything alive at the step, largest first; with prices where it was planned.
  std::vector<report::AliveRow> alive_at(Step step) const;
};

// "resnet50, batch 16, budget 470 MiB": what a reader of a report wants to know first. The batch is
// the first extent of the first input.
std::string title_of(const plan::Plan& plan);

Result<Subject> read_subject(const std::string& name, const SubjectOptions& options);

}  // namespace plimsoll::api
