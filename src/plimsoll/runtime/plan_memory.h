// Where the bytes of a plan really lie: in arenas that are taken once, or in a swap file that
// stands in for the host's (device/cpu/swap_file.h).
//
// A place in an arena is an address for good. A place in the file is lent to a caller outside a
// step as a copy, one at a time, which goes back with put_back().
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "plimsoll/device/cpu/arena.h"
#include "plimsoll/device/cpu/swap_file.h"
#include "plimsoll/plan/plan.h"
#include "plimsoll/runtime/call_trace.h"
#include "plimsoll/runtime/executor.h"

namespace plimsoll::runtime {

// Taken once: device memory, then the host's. What happens in them is one story, whichever plans
// run.
struct Arenas {
  std::vector<device::CpuArena> memory;
  std::unique_ptr<CallTrace> calls;  // when there is a trace
};

// Where a slot begins: an address, or without one a place in the swap file.
struct Spot {
  std::byte* address = nullptr;
  Offset in_file;
};

class PlanMemory {
 public:
  // The plan must outlive it. Without `arenas` it has no memory before take().
  PlanMemory(const plan::Plan& plan, std::shared_ptr<Arenas> arenas)
      : plan_(plan), arenas_(std::move(arenas)) {}

  bool taken() const { return arenas_ != nullptr; }
  Status take(const ExecutorOptions& options);

  Arenas& arenas() const { return *arenas_; }
  // Null where the swap file stands in for it.
  std::byte* arena(std::size_t index) const { return arenas_->memory[index].data(); }
  std::span<const std::byte> device() const;
  bool on_device(const std::byte* address) const;

  std::byte* address(const plan::Slot& slot) const;
  Spot spot(const plan::Slot& slot) const;

  // These bytes, until the next call of lend() or put_back().
  Status lend(const Spot& spot, std::size_t bytes, std::span<std::byte>& out);
  Status put_back();
  // Between two spots, one of which may lie in the file.
  Status copy(const Spot& from, const Spot& to, std::size_t bytes);

 private:
  bool in_file(const plan::Slot& slot) const;

  const plan::Plan& plan_;
  std::shared_ptr<Arenas> arenas_;
  device::SwapFile file_;
  bool swaps_to_file_ = false;
  std::vector<std::byte> lent_;  // a copy of bytes of the file
  Offset lent_from_;
};

}  // namespace plimsoll::runtime
