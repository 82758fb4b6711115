#include "plimsoll/api/diff.h"

#include "plimsoll/base/byte_size.h"

namespace plimsoll::api {

Result<report::Report> diff_report(const std::string& before, const std::string& after,
                                   const SubjectOptions& options) {
  PLIMSOLL_TRY(Subject first, read_subject(before, options));
  PLIMSOLL_TRY(Subject second, read_subject(after, options));
  if (first.timeline.title == second.timeline.title) {
    first.timeline.title += " (before)";
    second.timeline.title += " (after)";
  }
  report::Report out;
  out.title = first.timeline.title + " against " + second.timeline.title;
  out.comparison = report::compare(first.timeline, second.timeline);
  out.chapters.push_back(chapter_of(std::move(first)));
  out.chapters.push_back(chapter_of(std::move(second)));
  return out;
}

Result<Bytes> parse_threshold(const std::string& text, Bytes before) {
  if (text == "0" || text == "0%") return Bytes(0);
  return parse_byte_size(text, before);
}

}  // namespace plimsoll::api
