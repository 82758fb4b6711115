// Any bytes: refused, or a schedule that replays to an answer.
#include <string_view>

#include "plimsoll/schedule/replay_schedule.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace plimsoll;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto file = schedule::read_schedule(text);
  if (file) static_cast<void>(schedule::replay_schedule(*file));
  return 0;
}
