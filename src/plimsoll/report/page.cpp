#include "plimsoll/report/page.h"

#include "plimsoll/base/check.h"
#include "plimsoll/report/markup.h"
#include "plimsoll/report/web_assets.h"

namespace plimsoll::report {
namespace {

void replace_once(std::string& text, std::string_view mark, std::string_view by) {
  const auto at = text.find(mark);
  PLIMSOLL_CHECK(at != std::string::npos, "the page template lacks a mark");
  text.replace(at, mark.size(), by);
}

}  // namespace

std::string to_html(const Report& report) {
  std::string page(kReportTemplate);
  // The data last: nothing in it is searched for marks.
  replace_once(page, "/*PLIMSOLL_STYLE*/", kReportStyle);
  replace_once(page, "/*PLIMSOLL_SCRIPT*/", kReportScript);
  replace_once(page, "PLIMSOLL_TITLE", escaped(report.title));
  replace_once(page, "PLIMSOLL_DATA", to_json(report));
  return page;
}

}  // namespace plimsoll::report
