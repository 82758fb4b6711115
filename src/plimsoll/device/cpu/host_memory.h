// Host memory as arenas and pools of a device: the CPU's own, and what the fake device stands on.
#pragma once

#include <memory>

#include "plimsoll/device/cpu/arena.h"
#include "plimsoll/device/device.h"
#include "plimsoll/memory/host_pool.h"

namespace plimsoll::device {

class HostArena final : public Arena {
 public:
  explicit HostArena(CpuArena memory) : memory_(std::move(memory)) {
    data_ = memory_.data();
    size_ = memory_.size();
  }

 private:
  CpuArena memory_;
};

class HostMemoryPool final : public Pool {
 public:
  std::byte* allocate(Bytes bytes) override {
    return static_cast<std::byte*>(pool_.allocate(bytes));
  }
  void free(std::byte* memory) override { pool_.free(memory); }
  Bytes peak_in_use() const override { return pool_.statistics().peak_in_use; }

 private:
  memory::HostPool pool_;
};

inline Result<std::unique_ptr<Arena>> take_host_arena(Bytes bytes) {
  PLIMSOLL_TRY(CpuArena memory, CpuArena::make(bytes));
  return std::make_unique<HostArena>(std::move(memory));
}

}  // namespace plimsoll::device
