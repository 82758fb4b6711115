// Any bytes as a CSV problem: an error or a problem that verifies, is written back the same, and
// packs.
#include <cstdint>
#include <string_view>

#include "plimsoll/base/check.h"
#include "plimsoll/pack/formats/csv.h"
#include "plimsoll/pack/pack.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll::pack;
  const auto problem = read_csv({reinterpret_cast<const char*>(data), size});
  if (!problem) return 0;
  PLIMSOLL_CHECK(verify(*problem).has_value());
  const auto again = read_csv(write_csv(*problem, nullptr));
  PLIMSOLL_CHECK(again.has_value() && *again == *problem);
  PLIMSOLL_CHECK(pack(*problem, {.deadline_seconds = 0.001, .deterministic = true}).has_value());
  return 0;
}
