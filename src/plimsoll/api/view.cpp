#include "plimsoll/api/view.h"

#include <filesystem>

#include "plimsoll/base/file.h"
#include "plimsoll/plan/plan_file.h"
#include "plimsoll/report/page.h"
#include "plimsoll/report/picture.h"

namespace plimsoll::api {
namespace {

// The curve in a file that `plan --sweep --json` wrote; nothing for whatever else the name means.
Result<std::optional<report::Curve>> read_curve(const std::string& name) {
  if (!std::filesystem::is_regular_file(name)) return std::optional<report::Curve>();
  PLIMSOLL_TRY(const MappedFile file, MappedFile::open(name));
  if (plan::looks_like_plan(file.text()) || !report::looks_like_curve(file.text()))
    return std::optional<report::Curve>();
  auto curve = report::parse_curve(file.text(), std::filesystem::path(name).filename().string());
  if (!curve) return forward(curve, name);
  return std::optional<report::Curve>(std::move(*curve));
}

// A plan is named by what it plans, alone or beside the trace of its run; whatever else by its
// file.
std::string joint_title(const std::vector<Subject>& subjects) {
  if (subjects.size() == 1)
    return subjects[0].plan ? title_of(*subjects[0].plan) : subjects[0].timeline.title;
  const bool both = subjects[0].plan && subjects[1].plan;
  for (const Subject& subject : subjects) {
    if (subject.plan && !both) return title_of(*subject.plan);
  }
  return subjects[0].timeline.title + " and " + subjects[1].timeline.title;
}

}  // namespace

report::Chapter chapter_of(Subject subject) {
  if (subject.dag_schedule) {
    std::vector<report::AliveRow> peak_set =
        subject.alive_at(report::peak_of(subject.timeline).time_step);
    report::Diagnosis diagnosis = report::diagnose(subject.timeline);
    return {std::move(subject.timeline), std::move(peak_set), std::move(diagnosis), {}};
  }
  if (!subject.plan)
    return report::chapter_of(std::move(subject.timeline), std::move(subject.diagnosis));
  return report::chapter_of(std::move(subject.timeline), *subject.plan, subject.profile);
}

Result<report::Report> make_report(const std::vector<std::string>& names,
                                   const SubjectOptions& options) {
  std::vector<Subject> subjects;
  report::Report out;
  for (const std::string& name : names) {
    PLIMSOLL_TRY(std::optional<report::Curve> curve, read_curve(name));
    if (curve && out.curve)
      return fail(ErrorCode::kUsage, "{}: view takes one sweep, and {} is one already", name,
                  out.curve->title);
    if (curve) {
      out.curve = std::move(curve);
    } else {
      PLIMSOLL_TRY(Subject subject, read_subject(name, options));
      subjects.push_back(std::move(subject));
    }
  }
  if (subjects.size() > 2) {
    return fail(ErrorCode::kUsage,
                "view takes one file or two (a plan and a trace of its run), not {}",
                subjects.size());
  }
  out.title = subjects.empty() ? out.curve->title : joint_title(subjects);
  if (subjects.size() == 1) subjects[0].timeline.title = out.title;
  if (subjects.size() == 2 && subjects[0].plan.has_value() != subjects[1].plan.has_value()) {
    if (!subjects[0].plan) std::swap(subjects[0], subjects[1]);
    subjects[0].timeline.title = "planned";
    subjects[1].timeline.title = "measured";
  }
  if (subjects.size() == 2)
    out.comparison = report::compare(subjects[0].timeline, subjects[1].timeline);
  for (Subject& subject : subjects) out.chapters.push_back(chapter_of(std::move(subject)));
  return out;
}

Result<std::vector<WrittenFile>> write_report(const report::Report& report,
                                              const ReportFiles& files) {
  std::vector<WrittenFile> written;
  std::vector<OutputFile> pending;
  const auto write = [&](const std::string& path, const std::string& content) -> Status {
    PLIMSOLL_TRY(OutputFile out, OutputFile::create(path));
    PLIMSOLL_RETURN_IF_ERROR(out.write(content));
    pending.push_back(std::move(out));
    written.push_back({path, content.size()});
    return {};
  };
  std::string svg;
  if (!files.svg.empty() || !files.png.empty()) {
    svg = report.chapters.empty() ? report::to_svg(*report.curve)
                                  : report::to_svg(report.chapters.front().timeline);
  }
  if (!files.html.empty()) PLIMSOLL_RETURN_IF_ERROR(write(files.html, report::to_html(report)));
  if (!files.svg.empty()) PLIMSOLL_RETURN_IF_ERROR(write(files.svg, svg));
  if (!files.png.empty()) {
    PLIMSOLL_TRY(const std::string png, report::to_png(svg));
    PLIMSOLL_RETURN_IF_ERROR(write(files.png, png));
  }
  PLIMSOLL_RETURN_IF_ERROR(commit_together(pending));
  return written;
}

}  // namespace plimsoll::api
