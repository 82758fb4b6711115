#include "plimsoll/device/cpu/arena.h"

#include <algorithm>
#include <utility>

#include <plimsoll_malloc.h>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/checked.h"

namespace plimsoll::device {

Result<CpuArena> CpuArena::make(Bytes bytes) {
  constexpr std::int64_t kHugePage = 2 << 20;
  constexpr std::int64_t kLine = 64;
  const std::int64_t wanted = std::max<std::int64_t>(bytes.value, 1);
  const auto rounded = checked_round_up(wanted, kHugePage);
  if (!rounded)
    return fail(ErrorCode::kDoesNotFit, "an arena of {} bytes does not fit an address space",
                bytes);
  void* slab = ::plimsoll_malloc_reserve(static_cast<std::size_t>(wanted), PLIMSOLL_MALLOC_GUARD);
  if (slab == nullptr) {
    return fail(ErrorCode::kDoesNotFit,
                "the system refuses an arena of {}: it has not so much memory", human(bytes));
  }
  CpuArena out;
  out.slab_ = static_cast<std::byte*>(slab);
  out.size_ = bytes;
  out.data_ = out.slab_ + *rounded - round_up(bytes.value, kLine);
  return out;
}

CpuArena::CpuArena(CpuArena&& other) noexcept {
  *this = std::move(other);
}

CpuArena& CpuArena::operator=(CpuArena&& other) noexcept {
  std::swap(slab_, other.slab_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

CpuArena::~CpuArena() {
  ::plimsoll_free(slab_);
}

}  // namespace plimsoll::device
