// PLIMSOLL_MALLOC_CHECK=1: finds writes behind a block's end, double frees and pointers that are no
// block's.
//
//   small   | the program's bytes | 0xCA … 0xCA | size ^ key ^ address | canary up to the block's
//           last word
//   others  | the program's bytes | 0xCA … to the end of the kernel page | guard page |
//
// free() looks at the canary and aborts with a line that names the block and its size; a write that
// reaches the guard page faults at once. Freed small blocks are filled with 0xDF. Every small block
// comes from the common pool under one lock: slow, but no path of the allocator is left unchecked.
// Blocks that were allocated before the mode began (by the loader) are known by their page's owner,
// and freed unchecked.
#pragma once

#include <atomic>
#include <cstddef>

namespace plimsoll::heap {

extern constinit std::atomic<bool> check_mode;
inline bool checking() {
  return check_mode.load(std::memory_order_relaxed);
}
void begin_checking();

void* checked_allocate(std::size_t bytes, std::size_t alignment);
void checked_release(void* block);
void* checked_reallocate(void* block, std::size_t bytes);
std::size_t checked_bytes(const void* block);

}  // namespace plimsoll::heap
