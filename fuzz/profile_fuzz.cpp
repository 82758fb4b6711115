// Any bytes as a device profile: refused, or what is written of it reads back equal.
#include <cstdlib>
#include <string_view>

#include "plimsoll/schedule/device_profile.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace plimsoll;
  const auto profile = schedule::read_profile({reinterpret_cast<const char*>(data), size});
  if (!profile) return 0;
  const auto again = schedule::read_profile(schedule::to_json(*profile));
  if (!again || *again != *profile) std::abort();
  return 0;
}
