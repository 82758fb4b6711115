/* The host allocator, for programs that link it (-lplimsoll_malloc) rather than preload it.
 *
 * Linked or preloaded, malloc, free and their kin are replaced for the whole program. The functions
 * below are the same allocator by names of its own, and what malloc has no name for. See
 * docs/malloc.md.
 */
#ifndef PLIMSOLL_MALLOC_H
#define PLIMSOLL_MALLOC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As malloc, calloc, realloc, aligned_alloc, free and malloc_usable_size. */
void* plimsoll_malloc(size_t bytes);
void* plimsoll_calloc(size_t count, size_t bytes);
void* plimsoll_realloc(void* block, size_t bytes);
void* plimsoll_aligned_alloc(size_t alignment, size_t bytes);
void plimsoll_free(void* block);
size_t plimsoll_malloc_usable_size(const void* block);

/* A slab of huge pages for somebody who manages memory himself: begins at a multiple of 2 MiB,
 * counts in the statistics, reads as zero, is given back by plimsoll_free. With
 * PLIMSOLL_MALLOC_POPULATE its pages are made resident now, in one system call, rather than at
 * first touch. With PLIMSOLL_MALLOC_GUARD the kernel page behind `bytes` (rounded up to 2 MiB)
 * faults when touched. Null when there is no memory. */
enum { PLIMSOLL_MALLOC_POPULATE = 1, PLIMSOLL_MALLOC_GUARD = 2 };
void* plimsoll_malloc_reserve(size_t bytes, unsigned flags);

/* Gives all cached memory back to the system; returns the bytes. */
size_t plimsoll_malloc_trim(void);

typedef struct plimsoll_malloc_statistics {
  uint64_t live_bytes;          /* handed out now; small blocks count by their pages of 64 KiB */
  uint64_t peak_bytes;          /* the most that ever was */
  uint64_t cached_bytes;        /* free, but resident */
  uint64_t peak_held_bytes;     /* the most that live + cached ever were */
  uint64_t peak_resident_bytes; /* of the whole process, from the kernel */
  uint64_t reserved_bytes;      /* addresses */
  uint64_t metadata_bytes;
  uint64_t reused_bytes; /* handed out without a page fault to come */
  uint64_t purged_bytes; /* given back */
  uint64_t allocations;  /* small blocks count when their list is handed to a thread */
  /* small blocks that a thread freed and sent home to the pool that owns them */
  uint64_t remote_frees;
  uint64_t pools;
} plimsoll_malloc_statistics;

void plimsoll_malloc_get_statistics(plimsoll_malloc_statistics* out);
void plimsoll_malloc_print_statistics(int file);

#ifdef __cplusplus
}
#endif

#endif
