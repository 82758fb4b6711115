// Blocks of every size: which part of the allocator serves a request, and what a pointer belongs
// to.
//
//   up to 32 KiB   a block of a size class in a page of the thread's pool      pool.h
//   up to 1 MiB    slices                                                      slices.h
//   above          a span                                                      span_heap.h
//
// The functions here have the meaning of their namesakes in the C library, without errno: null
// means no memory. The fast paths are inline, so that the exported malloc and free contain them
// whole.
#pragma once

#include <cstddef>

#include "threads.h"

namespace plimsoll::heap {

struct Span;

// A request above this is refused: differences of pointers must not overflow.
inline constexpr std::size_t kLargestRequest = std::size_t{1} << 46;

void* allocate_slow(std::size_t bytes);
void release_slow(void* block);
void release_elsewhere(Descriptor* found, void* block);

// Null when the fast path has nothing.
inline void* allocate_fast(std::size_t bytes) {
  if (bytes > kDirectLimit) [[unlikely]]
    return nullptr;
  return this_pool->try_pop((bytes + kWord - 1) / kWord);
}

inline void* allocate(std::size_t bytes) {
  void* block = allocate_fast(bytes);
  return block != nullptr ? block : allocate_slow(bytes);
}

// Inlined whatever its size: the exported free() must not be a jump to it.
[[gnu::always_inline]] inline void release(void* block) {
  if (!PageMap::covers(block)) [[unlikely]]
    return release_slow(block);
  const PageMap::Entry& entry = page_map.entry_of(block);
  Pool* pool = this_pool;
  Descriptor* found = entry.descriptor.load(std::memory_order_relaxed);
  if (entry.owner.load(std::memory_order_relaxed) != pool) [[unlikely]]
    return release_elsewhere(found, block);
  pool->push(static_cast<Page*>(found), reinterpret_cast<std::uintptr_t>(block));
}

void* allocate_zeroed(std::size_t bytes);
// `alignment` is a power of two.
void* allocate_aligned(std::size_t bytes, std::size_t alignment);
// Null leaves the block as it was. Neither `block` nor `bytes` is 0.
void* reallocate(void* block, std::size_t bytes);
std::size_t usable_bytes(const void* block);

// ---- What the check mode is built on

struct Found {
  Descriptor* descriptor = nullptr;
  std::size_t usable = 0;  // 0: no block begins there
};
// What a pointer belongs to; aborts, naming the call, when no block begins there.
Found require_block(const char* call, const void* block);
// The first `incoming` bytes need no memory, see span_heap.h.
Span* allocate_span(std::size_t bytes, std::size_t alignment, std::size_t phase = 0,
                    std::size_t incoming = 0);
void release_unchecked(void* block);

}  // namespace plimsoll::heap
