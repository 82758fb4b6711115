// Any bytes as a plan file: the reader refuses, or the checker answers and what it accepts can be
// drawn and reads back.
#include <cstdlib>
#include <string_view>

#include "plimsoll/plan/check_plan.h"
#include "plimsoll/plan/plan_file.h"
#include "plimsoll/report/timeline_of_plan.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace plimsoll;
  const auto plan = plan::parse_plan({reinterpret_cast<const char*>(data), size});
  if (!plan || !plan::check_plan(*plan).ok()) return 0;
  report::peak_of(report::timeline_of(*plan, "plan"));
  const auto again = plan::parse_plan(plan::to_json(*plan));
  if (!again || !plan::check_plan(*again).ok()) std::abort();
  return 0;
}
