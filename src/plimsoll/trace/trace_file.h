// Our trace format: versioned JSON lines, one event a line (docs/formats/trace.md).
//
//   {"plimsoll_trace":1,"source":"plimsoll"}
//   {"kind":"allocation","start":1200,"bytes":4096,"address":140101061443584,"name":"conv1.out",
//    "category":"activation","phase":"forward"}
//   {"kind":"operator","start":1210,"end":5310,"name":"conv1","stream":7}
//   {"kind":"free","start":9000,"bytes":4096,"address":140101061443584}
//
// Lines, because a trace is written while a program runs and read while it may have been cut off;
// JSON, because everybody has a reader. Fields at their default are left out, so a line is some 90
// bytes. A file is what write_trace wrote or an error with its line number: unknown kinds, numbers
// out of range, a line over 1 MiB and a newer version are refused; unknown keys are skipped.
//
// Cost: about a microsecond a line each way. Memory: the trace itself plus one line.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "plimsoll/base/result.h"
#include "plimsoll/trace/event.h"

namespace plimsoll::trace {

inline constexpr int kTraceVersion = 1;

Result<Trace> parse_trace(std::string_view text);
std::string format_trace(const Trace& trace);

// Reads a file, gzipped or not (by its first bytes).
Result<Trace> read_trace(const std::filesystem::path& path);
Status write_trace(const std::filesystem::path& path, const Trace& trace);

}  // namespace plimsoll::trace
