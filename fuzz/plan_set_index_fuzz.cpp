// Any bytes as the index of a plan set: refused, or members that lie beside it, each size once.
#include <cstdlib>
#include <string_view>

#include "plimsoll/plan/plan_set_index.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace plimsoll;
  const auto index = plan::parse_plan_set_index({reinterpret_cast<const char*>(data), size});
  if (!index) return 0;
  std::int64_t before = 0;
  for (const plan::PlanSetEntry& entry : index->entries) {
    if (entry.size <= before || entry.file.empty() || entry.file == ".." ||
        entry.file.find('/') != std::string::npos)
      std::abort();
    before = entry.size;
  }
  return 0;
}
