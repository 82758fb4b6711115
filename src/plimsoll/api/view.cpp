#include "plimsoll/api/view.h"

#include <algorithm>
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

Result<report::Report> report_of_ranks(std::vector<Subject> subjects, const std::vector<int>& ranks,
                                       const std::vector<std::string>& names) {
  constexpr std::size_t kMostRanks = 64;
  if (subjects.size() > kMostRanks)
    return fail(ErrorCode::kUsage, "view draws at most {} ranks side by side, not {}", kMostRanks,
                subjects.size());
  report::Report out;
  std::string title = std::filesystem::path(names[0]).filename().string();
  const std::string number = "." + std::to_string(ranks[0]);
  if (const auto at = title.rfind(number); at != std::string::npos) title.erase(at, number.size());
  out.title = fmt::format("{}, {} ranks", title, ranks.size());
  std::vector<const report::Timeline*> timelines;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    if (subjects[i].timeline.operators.empty())
      return bad_input("{}: has no operators, as traces of `run --trace` have", names[i]);
    subjects[i].timeline.title = fmt::format("rank {}", ranks[i]);
    timelines.push_back(&subjects[i].timeline);
  }
  out.ranks = report::rank_views(timelines, ranks);
  for (Subject& subject : subjects) out.chapters.push_back(chapter_of(std::move(subject)));
  return out;
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
  const std::vector<int> ranks = report::ranks_of_names(names);
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
  const bool of_ranks =
      !ranks.empty() && !out.curve &&
      std::all_of(subjects.begin(), subjects.end(), [](const Subject& one) {
        return !one.plan && !one.dag_schedule && report::has_collectives(one.timeline);
      });
  if (of_ranks) return report_of_ranks(std::move(subjects), ranks, names);
  if (subjects.size() > 2) {
    return fail(ErrorCode::kUsage,
                "view takes one file, two (a plan and a trace of its run), or traces of the ranks "
                "of one run (run.0.jsonl run.1.jsonl ...), not {}",
                subjects.size());
  }
  out.title = subjects.empty() ? out.curve->title : joint_title(subjects);
  if (subjects.size() == 1) subjects[0].timeline.title = out.title;
  const auto was_measured = [](const Subject& one) { return !one.plan && !one.dag_schedule; };
  if (subjects.size() == 2 && was_measured(subjects[0]) != was_measured(subjects[1])) {
    if (was_measured(subjects[0])) std::swap(subjects[0], subjects[1]);
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
