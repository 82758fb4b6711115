// Any bytes as a trace, one JSON object a line: refused, or what is written of it reads back the
// same and can be drawn.
#include <cstdlib>
#include <string_view>

#include "plimsoll/report/timeline_of_trace.h"
#include "plimsoll/trace/chrome_trace.h"
#include "plimsoll/trace/trace_file.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace plimsoll;
  const auto trace = trace::parse_trace({reinterpret_cast<const char*>(data), size});
  if (!trace) return 0;
  const std::string text = trace::format_trace(*trace);
  const auto again = trace::parse_trace(text);
  if (!again || trace::format_trace(*again) != text) std::abort();
  trace::format_chrome_trace(*trace);
  report::peak_of(report::timeline_of(*trace, "trace", {}));
  return 0;
}
