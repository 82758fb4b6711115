// Where the bytes of a plan really lie: in arenas that are taken once, or in a swap file that
// stands in for the host's (device/cpu/swap_file.h).
//
// A place in an arena is an address for good. What lies in the file goes through host memory: where
// the device computes on the host, that is its own; else through pinned memory as large as the
// largest value that is swapped, one piece for the way out and one for the way in. Each belongs to
// one stream, which works in order.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "plimsoll/device/cpu/swap_file.h"
#include "plimsoll/device/device.h"
#include "plimsoll/plan/plan.h"
#include "plimsoll/runtime/call_trace.h"
#include "plimsoll/runtime/executor.h"

namespace plimsoll::runtime {

inline constexpr std::size_t kHostArena = 1;

// Taken once: device memory, then the host's, then other memories of the device. What happens in
// them is one story, whichever plans run.
struct Arenas {
  std::vector<std::unique_ptr<device::Arena>> memory;  // null: in the swap file
  std::unique_ptr<CallTrace> calls;                    // when there is a trace
};

// Where a slot begins: an address, or without one a place in the swap file.
struct Spot {
  std::byte* address = nullptr;
  Offset in_file;
};

class PlanMemory {
 public:
  // The plan must outlive it. Without `arenas` it has no memory before take().
  PlanMemory(const plan::Plan& plan, device::Device& device, std::shared_ptr<Arenas> arenas)
      : plan_(plan), device_(device), staging_(device), arenas_(std::move(arenas)) {}

  bool taken() const { return arenas_ != nullptr; }
  Status take(const ExecutorOptions& options);

  Arenas& arenas() const { return *arenas_; }
  // Null where the swap file stands in for it.
  std::byte* arena(std::size_t index) const;
  std::span<const std::byte> device_bytes() const;
  bool on_device(const std::byte* address) const;

  std::byte* address(const plan::Slot& slot) const;
  Spot spot(const plan::Slot& slot) const;

  Status write(const Spot& to, std::size_t bytes, const WriteBytes& content);
  Status read(const Spot& from, std::size_t bytes, const ReadBytes& use);
  // By the host, between two spots of which one may lie in the file.
  Status copy(const Spot& from, const Spot& to, std::size_t bytes);
  // Where bytes wait on their way between the file and a device that the host cannot write to; null
  // where there is no such way.
  std::byte* staged_out() const { return staged_out_ ? staged_out_->data() : nullptr; }
  std::byte* staged_in() const { return staged_in_ ? staged_in_->data() : nullptr; }

 private:
  bool in_file(const plan::Slot& slot) const;
  Status stage();

  const plan::Plan& plan_;
  device::Device& device_;
  Staging staging_;
  std::shared_ptr<Arenas> arenas_;
  device::SwapFile file_;
  bool swaps_to_file_ = false;
  std::unique_ptr<device::Arena> staged_out_;
  std::unique_ptr<device::Arena> staged_in_;
  std::vector<std::byte> copied_;  // bytes of the file
};

}  // namespace plimsoll::runtime
