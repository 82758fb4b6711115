// What `plimsoll replay` and `plimsoll convert` do, for the command line: trace/replay_file.h, and
// what a file is that is no trace.
#pragma once

#include "plimsoll/api/file_kind.h"
#include "plimsoll/trace/replay_file.h"

namespace plimsoll::api {

using trace::ReplayReport;
using trace::ReplayRequest;
using trace::ReplayRow;
using trace::to_json;

inline Result<ReplayReport> replay_trace(const ReplayRequest& request) {
  auto report = trace::replay_trace(request);
  if (!report) return tl::unexpected<Error>(naming_kind(report.error(), request.trace, "trace"));
  return report;
}

inline Result<std::int64_t> convert_trace(const std::string& from, const std::string& to) {
  auto events = trace::convert_trace(from, to);
  if (!events) return tl::unexpected<Error>(naming_kind(events.error(), from, "trace"));
  return events;
}

}  // namespace plimsoll::api
