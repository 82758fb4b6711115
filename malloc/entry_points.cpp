// The names of the C library that this allocator takes over.
//
// All of those that "Replacing malloc" in glibc's manual names, the __libc_ names under which some
// programs reach the original (left alone they would mix two heaps), and C23's sized frees.
// reallocarray, strdup and the like are left to glibc, whose own call these.
#include <cerrno>
#include <cstdlib>

#include "c_library.h"
#include "span_heap.h"
#include "statistics.h"

using namespace plimsoll::heap;

#pragma GCC visibility push(default)
extern "C" {

// Each from the start of a line of cache: malloc's instructions are one line then, and take 7 % of
// the time of bench/malloc's bursts longer where they begin at 16.
[[gnu::aligned(64)]] void* malloc(size_t bytes) {
  return malloc_as_c(bytes);
}
[[gnu::aligned(64)]] void free(void* block) {
  release(block);
}
void* calloc(size_t count, size_t bytes) {
  return calloc_as_c(count, bytes);
}
void* realloc(void* block, size_t bytes) {
  return realloc_as_c(block, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return aligned_as_c(alignment, bytes);
}
size_t malloc_usable_size(void* block) {
  return block == nullptr ? 0 : usable_bytes(block);
}

// glibc rounds an alignment that is no power of two up to one.
void* memalign(size_t alignment, size_t bytes) {
  return aligned_as_c(alignment > kLargestRequest ? alignment : std::bit_ceil(alignment), bytes);
}

int posix_memalign(void** out, size_t alignment, size_t bytes) {
  if (!std::has_single_bit(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  void* block = allocate_aligned(bytes, alignment);
  if (block == nullptr) return ENOMEM;
  *out = block;
  return 0;
}

void* valloc(size_t bytes) {
  return aligned_as_c(kKernelPage, bytes);
}
void* pvalloc(size_t bytes) {
  return bytes > kLargestRequest ? or_enomem(nullptr)
                                 : aligned_as_c(kKernelPage, round_up(bytes, kKernelPage));
}
void cfree(void* block) {
  release(block);
}
void free_sized(void* block, size_t) {
  release(block);
}
void free_aligned_sized(void* block, size_t, size_t) {
  release(block);
}

int malloc_trim(size_t) {
  release_what_waits();
  Guard guard(heap_lock);
  return span_heap.trim(true) > 0 ? 1 : 0;
}
void malloc_stats(void) {
  print_statistics(2);
}

// The C library's own names: a program that calls them must not mix two heaps.
// NOLINTBEGIN(bugprone-reserved-identifier)
void* __libc_malloc(size_t bytes) {
  return malloc_as_c(bytes);
}
void __libc_free(void* block) {
  release(block);
}
void __libc_cfree(void* block) {
  release(block);
}
void* __libc_calloc(size_t count, size_t bytes) {
  return calloc_as_c(count, bytes);
}
void* __libc_realloc(void* block, size_t bytes) {
  return realloc_as_c(block, bytes);
}
void* __libc_memalign(size_t alignment, size_t bytes) {
  return memalign(alignment, bytes);
}
void* __libc_valloc(size_t bytes) {
  return valloc(bytes);
}
void* __libc_pvalloc(size_t bytes) {
  return pvalloc(bytes);
}
int __posix_memalign(void** out, size_t alignment, size_t bytes) {
  return posix_memalign(out, alignment, bytes);
}
// NOLINTEND(bugprone-reserved-identifier)
}
#pragma GCC visibility pop
