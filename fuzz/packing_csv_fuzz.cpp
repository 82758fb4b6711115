// Any bytes as a CSV problem: an error or a problem that verifies, is written back the same, and
// packs.
#include <cstdint>
#include <string_view>

#include "plimsoll/base/check.h"
#include "plimsoll/pack/formats/csv.h"
#include "plimsoll/pack/pack.h"

namespace {

// Any bytes as the packing of a small problem, and as hints for it: read or refused.
void read_as_packing(std::string_view text) {
  using namespace plimsoll::pack;
  Problem problem = *read_csv("id,lower,upper,size\na,0,3,4\nb,1,5,4\n");
  if (const auto packing = read_packing_csv(problem, text))
    PLIMSOLL_CHECK(packing->offsets.size() == problem.buffers.size());
  if (take_hints_csv(problem, text)) PLIMSOLL_CHECK(verify(problem).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll::pack;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_as_packing(text);
  const auto problem = read_csv(text);
  if (!problem) return 0;
  PLIMSOLL_CHECK(verify(*problem).has_value());
  const auto again = read_csv(write_csv(*problem, nullptr));
  PLIMSOLL_CHECK(again.has_value() && *again == *problem);
  PLIMSOLL_CHECK(pack(*problem, {.deadline_seconds = 0.001, .deterministic = true}).has_value());
  return 0;
}
