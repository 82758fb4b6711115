// Two plans, traces or models compared: what `plimsoll diff` does.
#pragma once

#include <string>

#include "plimsoll/api/view.h"

namespace plimsoll::api {

// The report of both, with the comparison set.
Result<report::Report> diff_report(const std::string& before, const std::string& after,
                                   const SubjectOptions& options);

// "1%", "0.5%" of the total before, or a size: "64MiB".
Result<Bytes> parse_threshold(const std::string& text, Bytes before);

}  // namespace plimsoll::api
