// Any bytes as the index of a plan set: refused, or members that lie beside it, each size once.
#include <cstdlib>
#include <string_view>
#include <vector>

#include "plimsoll/plan/plan_set_index.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace plimsoll;
  const auto index = plan::parse_plan_set_index({reinterpret_cast<const char*>(data), size});
  if (!index) return 0;
  std::vector<std::int64_t> before;
  for (const plan::PlanSetEntry& entry : index->entries) {
    if (entry.sizes.size() != index->options.size() || entry.sizes <= before ||
        entry.file.empty() || entry.file == ".." || entry.file.find('/') != std::string::npos)
      std::abort();
    before = entry.sizes;
  }
  return 0;
}
