// Streams and devices as the allocators see them: numbers, with an order inside each stream.
//
// A stream is a queue of work that runs in order; two streams run in no order unless one waits for
// an event of the other. The number is whatever the device calls it (a CUDA stream handle, a
// PyTorch stream pointer); 0 is the default stream everywhere.
#pragma once

#include <compare>
#include <cstdint>

namespace plimsoll::memory {

struct StreamId {
  std::uint64_t value = 0;
  constexpr auto operator<=>(const StreamId&) const = default;
};

}  // namespace plimsoll::memory
