// A CUDA card as a device (device/device.h).
//
// Memory. An arena is one range of virtual addresses, mapped to exactly the bytes that were asked
// for, rounded up to the card's granularity of 2 MiB, with a range behind it that is never mapped:
// the arena ends at that edge, so a kernel that writes behind its last byte faults instead of
// corrupting a neighbour.
//
//   reserved  ├── unused ──┤── arena ────────────────┤ 2 MiB, unmapped │
//             │◀─────────── mapped, n × 2 MiB ───────▶│
//
// A host arena is pinned. A pool is our caching allocator (memory/caching_allocator.h) on it.
//
// Sequences. The first run launches every command from its stream, because kernels may load their
// code when they run first, which must not happen while a graph is captured. The second captures
// the same calls into one graph, and every run from then on is one launch of it: a command costs
// 1 to 2 µs instead of 4.5. A wait is an event of the command that is waited for; the
// other streams begin behind an event of stream 0, and stream 0 ends behind all of them. Timed runs
// are launched command by command between pairs of events.
//
// The device's primary context is used, as by PyTorch and the CUDA runtime.
//
// Failures: kDevice, in words, when there is no driver, no such card, a card before sm_80, a driver
// older than the runtime, or when a kernel failed; after that the context is lost and every call
// says so. kDoesNotFit with what is needed and what is free when memory is short.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "plimsoll/device/device.h"

namespace plimsoll::device::cuda {

class CudaCard : public Device {
 public:
  // "NVIDIA H200, sm_90": what plans call the instruction set.
  virtual std::string description() const = 0;
  virtual std::string architecture() const = 0;
  // Device memory of this process beside what was asked for here; 0 where the driver does not say.
  virtual Bytes context_bytes() const = 0;
  virtual Bytes bare_context_bytes() const = 0;
  // Other processes on the card, in words.
  virtual std::string neighbours() const = 0;
};

Result<std::unique_ptr<CudaCard>> open_cuda_card(int index);

}  // namespace plimsoll::device::cuda
