// What stands in web/, as bytes in the program. cmake/embed_web.cmake writes the definitions.
#pragma once

#include <string_view>

namespace plimsoll::report {

extern const std::string_view kReportTemplate;
extern const std::string_view kReportStyle;
extern const std::string_view kReportScript;

}  // namespace plimsoll::report
