// Any bytes as a JSON problem: an error, or a problem that verifies and packs.
#include <cstdint>
#include <string_view>

#include "plimsoll/base/check.h"
#include "plimsoll/pack/formats/json.h"
#include "plimsoll/pack/pack.h"

namespace {

// Any bytes as the packing of a small problem, and as hints for it: read or refused.
void read_as_packing(std::string_view text) {
  using namespace plimsoll::pack;
  Problem problem = *read_json(R"({"buffers": [{"id": "a", "lower": 0, "upper": 3, "size": 4},
                                     {"id": "b", "lower": 1, "upper": 5, "size": 4}]})");
  if (const auto packing = read_packing_json(problem, text))
    PLIMSOLL_CHECK(packing->offsets.size() == problem.buffers.size());
  if (take_hints_json(problem, text)) PLIMSOLL_CHECK(verify(problem).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace plimsoll::pack;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_as_packing(text);
  const auto problem = read_json(text);
  if (!problem) return 0;
  PLIMSOLL_CHECK(verify(*problem).has_value());
  PLIMSOLL_CHECK(pack(*problem, {.deadline_seconds = 0.001, .deterministic = true}).has_value());
  return 0;
}
