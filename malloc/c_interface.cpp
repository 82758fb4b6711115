#include <cerrno>

#include "blocks.h"
#include "c_library.h"
#include "span_heap.h"
#include "statistics.h"

using namespace plimsoll::heap;

#pragma GCC visibility push(default)
extern "C" {

void* plimsoll_malloc(size_t bytes) {
  return malloc_as_c(bytes);
}
void* plimsoll_calloc(size_t count, size_t bytes) {
  return calloc_as_c(count, bytes);
}
void* plimsoll_realloc(void* block, size_t bytes) {
  return realloc_as_c(block, bytes);
}
void* plimsoll_aligned_alloc(size_t alignment, size_t bytes) {
  return aligned_as_c(alignment, bytes);
}
void plimsoll_free(void* block) {
  release(block);
}
size_t plimsoll_malloc_usable_size(const void* block) {
  return block == nullptr ? 0 : usable_bytes(block);
}

void* plimsoll_malloc_reserve(size_t bytes, unsigned flags) {
  if (bytes == 0 || bytes > kLargestRequest) return nullptr;
  const std::size_t rounded = round_up(bytes, kHugePage);
  const bool guard = (flags & PLIMSOLL_MALLOC_GUARD) != 0;
  const std::size_t total = rounded + (guard ? kKernelPage : 0);
  Span* span = allocate_span(total, kHugePage, 0, total);  // cached memory would not be zero
  if (span == nullptr) return nullptr;
  if (!span->zero) purge(span->start, span->length());
  if (guard) {
    protect(span->start + rounded, kKernelPage);
    span->guarded = true;
    span->bytes = rounded;
  }
  if ((flags & PLIMSOLL_MALLOC_POPULATE) != 0) populate(span->start, rounded);
  return span->start;
}

size_t plimsoll_malloc_trim(void) {
  release_what_waits();
  Guard guard(heap_lock);
  return span_heap.trim(true);
}

void plimsoll_malloc_get_statistics(plimsoll_malloc_statistics* out) {
  *out = statistics();
}
void plimsoll_malloc_print_statistics(int file) {
  print_statistics(file);
}
}
#pragma GCC visibility pop
