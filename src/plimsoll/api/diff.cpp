#include "plimsoll/api/diff.h"

#include <cstdlib>

#include <fmt/format.h>

#include "plimsoll/base/byte_size.h"

namespace plimsoll::api {
namespace {

// The finding: "b.json takes 99.46 MiB more than a.json: 1021.9 MiB, then 1.10 GiB".
std::string heading(const report::Comparison& found) {
  const Bytes growth = found.growth();
  if (growth.value == 0)
    return fmt::format("{} and {}: {} both", found.before, found.after, human(found.total_after));
  return fmt::format("{} takes {} {} than {}: {}, then {}", found.after,
                     human(Bytes(std::abs(growth.value))), growth.value > 0 ? "more" : "less",
                     found.before, human(found.total_before), human(found.total_after));
}

}  // namespace

Result<report::Report> diff_report(const std::string& before, const std::string& after,
                                   const SubjectOptions& options) {
  PLIMSOLL_TRY(Subject first, read_subject(before, options));
  PLIMSOLL_TRY(Subject second, read_subject(after, options));
  if (first.timeline.title == second.timeline.title) {
    first.timeline.title += " (before)";
    second.timeline.title += " (after)";
  }
  report::Report out;
  out.comparison = report::compare(first.timeline, second.timeline);
  out.title = heading(*out.comparison);
  out.chapters.push_back(chapter_of(std::move(first)));
  out.chapters.push_back(chapter_of(std::move(second)));
  return out;
}

Result<Bytes> parse_threshold(const std::string& text, Bytes before) {
  if (text == "0" || text == "0%") return Bytes(0);
  return parse_byte_size(text, before);
}

}  // namespace plimsoll::api
