// The report page: one HTML file that needs nothing but a browser.
//
// The template, the style and the scripts stand in web/ as ordinary files and are built into the
// program; here they become one file with the data inside. Its content policy forbids every
// request, so a report can be opened from disk, mailed, or kept for years.
#pragma once

#include <string>

#include "plimsoll/report/report_data.h"

namespace plimsoll::report {

std::string to_html(const Report& report);

}  // namespace plimsoll::report
