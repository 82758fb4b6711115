// Host memory that the card reads and writes by itself: pinned.
//
// Much of it takes long to get: cudaHostAlloc asks the system for one page after the other, and
// 38 GB took more than 30 s on a virtual machine. So large arenas are mapped here, in large pages
// where the system has any, touched by many threads at once, and pinned as they are then. The
// driver is asked for its own where it does not pin memory of somebody else; and for more than is
// free: a system that runs out of pages while they are touched ends a program.
#pragma once

#include <cuda_runtime_api.h>

#include "plimsoll/device/device.h"

namespace plimsoll::device::cuda {

class PinnedArena final : public Arena {
 public:
  PinnedArena() = default;
  PinnedArena(const PinnedArena&) = delete;
  PinnedArena& operator=(const PinnedArena&) = delete;
  ~PinnedArena() override;

  cudaError_t take(Bytes bytes);

 private:
  bool map_and_pin(std::size_t wanted);

  std::size_t mapped_ = 0;  // bytes of our own mapping; none: the driver's
};

}  // namespace plimsoll::device::cuda
