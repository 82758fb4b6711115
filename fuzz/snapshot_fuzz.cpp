// Reads anything as a snapshot: no crash, no growth beyond the input.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "plimsoll/trace/replay.h"
#include "plimsoll/trace/snapshot.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto snapshot =
      plimsoll::trace::parse_snapshot({reinterpret_cast<const char*>(data), size});
  if (snapshot) {
    const auto trace = plimsoll::trace::to_trace(*snapshot);
    (void)plimsoll::trace::compile_replay(trace);
  }
  return 0;
}
