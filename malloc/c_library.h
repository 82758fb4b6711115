// What the C library promises beyond memory: errno, overflow, zero sizes.
//
// malloc(0) is a block of its own. realloc(p, 0) frees and returns null, as glibc's does. A product
// that overflows and a size above PTRDIFF_MAX are ENOMEM. free leaves errno alone.
#pragma once

#include <bit>
#include <cerrno>
#include <cstddef>

#include "blocks.h"

namespace plimsoll::heap {

inline void* or_enomem(void* block) {
  if (block == nullptr) [[unlikely]]
    errno = ENOMEM;
  return block;
}

// Apart, so that the fast path calls nothing and saves no register.
[[gnu::noinline]] inline void* malloc_slow_as_c(std::size_t bytes) {
  return or_enomem(allocate_slow(bytes));
}

inline void* malloc_as_c(std::size_t bytes) {
  void* block = allocate_fast(bytes);
  return block != nullptr ? block : malloc_slow_as_c(bytes);
}

inline void* calloc_as_c(std::size_t count, std::size_t bytes) {
  std::size_t total = 0;
  if (__builtin_mul_overflow(count, bytes, &total)) total = SIZE_MAX;
  return or_enomem(allocate_zeroed(total));
}

inline void* realloc_as_c(void* block, std::size_t bytes) {
  if (block == nullptr) return or_enomem(allocate(bytes));
  if (bytes == 0) {
    release(block);
    return nullptr;
  }
  return or_enomem(reallocate(block, bytes));
}

// An alignment that is no power of two is EINVAL.
inline void* aligned_as_c(std::size_t alignment, std::size_t bytes) {
  if (!std::has_single_bit(alignment)) {
    errno = EINVAL;
    return nullptr;
  }
  return or_enomem(allocate_aligned(bytes, alignment));
}

}  // namespace plimsoll::heap
