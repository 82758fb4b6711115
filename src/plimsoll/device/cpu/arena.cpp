#include "plimsoll/device/cpu/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "plimsoll/base/byte_size.h"
#include "plimsoll/base/checked.h"

namespace plimsoll::device {

Result<CpuArena> CpuArena::make(Bytes bytes) {
  constexpr std::int64_t kHugePage = 2 << 20;
  constexpr std::int64_t kLine = 64;
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  const auto rounded = checked_round_up(std::max<std::int64_t>(bytes.value, 1), kHugePage);
  const auto total = rounded ? checked_add(*rounded, kHugePage + page) : std::nullopt;
  if (!total) return fail(ErrorCode::kDoesNotFit, "an arena of {} bytes does not fit an address space", bytes);
  void* base = ::mmap(nullptr, static_cast<std::size_t>(*total), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return fail(ErrorCode::kDoesNotFit, "the system refuses an arena of {}: {}", human(bytes), std::strerror(errno));
  }
  CpuArena out;
  out.mapping_ = static_cast<std::byte*>(base);
  out.mapped_ = static_cast<std::size_t>(*total);
  out.size_ = bytes;
  // The guard stands on a huge-page boundary; the arena ends right below it.
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  const std::uintptr_t begin = (address + kHugePage - 1) / kHugePage * kHugePage;
  std::byte* guard = reinterpret_cast<std::byte*>(begin) + *rounded;
  if (::mprotect(guard, static_cast<std::size_t>(page), PROT_NONE) != 0) {
    return fail(ErrorCode::kInternal, "cannot protect the arena's guard page: {}", std::strerror(errno));
  }
  ::madvise(reinterpret_cast<void*>(begin), static_cast<std::size_t>(*rounded), MADV_HUGEPAGE);
  out.data_ = guard - round_up(bytes.value, kLine);
  return out;
}

CpuArena::CpuArena(CpuArena&& other) noexcept { *this = std::move(other); }

CpuArena& CpuArena::operator=(CpuArena&& other) noexcept {
  std::swap(mapping_, other.mapping_);
  std::swap(mapped_, other.mapped_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

CpuArena::~CpuArena() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapped_);
}

}  // namespace plimsoll::device
