// One contiguous range of host memory, a slab of the host allocator's (malloc/), with a guard page
// behind it.
//
// It reads as zero and is not resident before it is touched. The range ends exactly at the guard
// (rounded up to 64 bytes), so that a kernel that writes behind the arena's last byte faults at
// once instead of corrupting a neighbour. Huge pages are asked for.
#pragma once

#include <cstddef>
#include <span>

#include "plimsoll/base/result.h"
#include "plimsoll/base/units.h"

namespace plimsoll::device {

class CpuArena {
 public:
  static Result<CpuArena> make(Bytes bytes);

  CpuArena() = default;
  CpuArena(CpuArena&& other) noexcept;
  CpuArena& operator=(CpuArena&& other) noexcept;
  ~CpuArena();

  std::byte* data() const { return data_; }
  Bytes size() const { return size_; }
  std::span<std::byte> bytes() const { return {data_, static_cast<std::size_t>(size_.value)}; }

 private:
  std::byte* slab_ = nullptr;
  std::byte* data_ = nullptr;
  Bytes size_;
};

}  // namespace plimsoll::device
