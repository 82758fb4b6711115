// Any bytes as a JSON problem: an error, or a problem that verifies and packs.
#include <cstdint>
#include <string_view>

#include "plimsoll/base/check.h"
#include "plimsoll/pack/formats/json.h"
#include "plimsoll/pack/pack.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll::pack;
  const auto problem = read_json({reinterpret_cast<const char*>(data), size});
  if (!problem) return 0;
  PLIMSOLL_CHECK(verify(*problem).has_value());
  PLIMSOLL_CHECK(pack(*problem, {.deadline_seconds = 0.001, .deterministic = true}).has_value());
  return 0;
}
