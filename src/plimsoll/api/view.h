// From what a user names to a report in files: what `plimsoll view` does.
//
//   plan.json ──┐
//   trace.jsonl ├─▶ timeline(s) ─▶ report ─▶ report.html, timeline.svg, timeline.png
//   snapshot   ─┤
//   sweep.json ─┤
//   MODEL      ─┘
//
// Two names make one report: a plan and the trace of its run become planned against measured; two
// of a kind become before and after. Traces of the ranks of one run ("run.0.jsonl run.1.jsonl")
// stand side by side, as many as there are. The JSON of a sweep adds the curve, or is a report of
// its own.
#pragma once

#include <string>
#include <vector>

#include "plimsoll/api/subject.h"
#include "plimsoll/report/report_data.h"

namespace plimsoll::api {

report::Chapter chapter_of(Subject subject);

Result<report::Report> make_report(const std::vector<std::string>& names,
                                   const SubjectOptions& options);

struct ReportFiles {
  std::string html;
  std::string svg;
  std::string png;
};

struct WrittenFile {
  std::string path;
  std::size_t bytes = 0;
};

// Writes every output that has a name, all or none.
Result<std::vector<WrittenFile>> write_report(const report::Report& report,
                                              const ReportFiles& files);

}  // namespace plimsoll::api
