// Medium blocks, above 32 KiB and up to 1 MiB: runs of slices of 4 KiB in segments of 2 MiB.
//
// A segment keeps a bit per slice and, for each block, its length at its first slice. A request
// takes the shortest free run that is long enough (best fit; lowest address among equals) in a
// segment whose longest free run suffices; segments are kept in bins by that run, so that nearly
// full ones are tried first and empty ones stay empty. An empty segment goes back to the span heap.
// Memory counts as in use by granules: a granule none of whose slices is used is cache.
//
// Threads: takes heap_lock.
#pragma once

#include <cstddef>

#include "page_map.h"

namespace plimsoll::heap {

inline constexpr std::size_t kMediumLimit = std::size_t{1} << 20;

// `alignment` is a power of two up to kMediumLimit. Null when there is no memory.
void* allocate_slices(std::size_t bytes, std::size_t alignment);
std::size_t slice_allocations();  // so far
// The usable bytes of a block; 0 when no block begins at this address (it was freed, or points
// inside one).
std::size_t slice_bytes(const Descriptor* segment, const void* block);
// Whether the address is the beginning of a slice that belongs to no block.
bool is_free_slice(const Descriptor* segment, const void* address);
// False when no block begins there.
bool free_slices(Descriptor* segment, void* block);
// Makes a block shorter, or longer when the slices behind it are free.
bool resize_slices(Descriptor* segment, void* block, std::size_t bytes);

// Gives back free granules' memory; hold heap_lock.
std::size_t purge_free_slices(std::size_t bytes);

}  // namespace plimsoll::heap
