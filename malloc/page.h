// A page: 64 or 256 KiB of blocks of one size, owned by one thread's pool.
//
// Its blocks are in one of five places: with the program; in a pool's list for the class, from
// which malloc pops; in a pool's magazine (magazine.h); in `freed`; or on their way home from
// another thread (remote_list.h). The lists are linked through the blocks themselves.
//
// The owner's frees go to the list that `home` points at, usually `freed`: pages empty out and can
// be given back, blocks allocated together stay together, and malloc's next block does not hang on
// the latest free. Only of the page that the pool allocates from, and while it has few blocks, it
// is the pool's list itself: short lists would have to be refilled all the time, and the block
// freed last is still in the cache.
//
// Counting. malloc does not count. free counts `countdown` to zero, and what zero means depends on
// the state:
//
//   current    the pool allocates from it. Which of its blocks are outstanding is not known;
//              `countdown` falls from kMostFrees, and tells how many were freed, for the statistics
//   asleep     nothing free in it; zero: enough came back to be worth allocating from (a few
//              blocks, not the first, so that a page does not go in and out of the list with every
//              free)
//   available  in the pool's list of pages with free blocks; zero: wholly free, the page goes back
//              to the heap
//
// So one decrement and one test serve for all three. A page stops being current when none of its
// blocks is left on a list, so that all count as outstanding: countdown + sleeping.
//
// Two lines of cache: what other threads read, and what the owner writes with every free.
//
// Marks. A freed block's first word is the address of the next block, or 0. Its second word is its
// mark, a number made from the block's own address that no pointer has, and other data by chance
// once in 2^64. free() compares it: a block that has its mark was freed before, wherever it is
// meanwhile (in a list, or carrying others home). malloc takes the mark off, lest a block that was
// never written looks freed.
#pragma once

#include <atomic>
#include <cstdint>

#include "page_map.h"

namespace plimsoll::heap {

template <typename T>
using Atomic = std::atomic<T>;

enum class PageState : std::uint8_t { kCurrent, kAsleep, kAvailable };

struct alignas(128) Page : Descriptor {
  static constexpr std::uint32_t kMostFrees = ~std::uint32_t{0};

  std::uint8_t granules = 1;
  std::uint8_t size_class = 0;
  std::uint32_t block = 0;  // bytes
  char* start = nullptr;
  std::uint32_t capacity = 0;  // blocks

  alignas(64) std::uintptr_t* home = &freed;
  std::uintptr_t freed = 0;  // head; 0 when empty
  std::uint32_t countdown = kMostFrees;
  std::uint32_t carved = 0;    // blocks that were ever linked; those behind were never touched
  std::uint32_t sleeping = 0;  // of a current page: blocks in `freed` that countdown did not count
  PageState state = PageState::kCurrent;
  bool apart = false;    // see pool.h
  Page* next = nullptr;  // among the pool's available pages of the class
  Page* previous = nullptr;

  std::size_t bytes() const { return granules * kGranule; }
};

static_assert(sizeof(Page) == 128, "the other threads' line and the owner's");

// Asks for a cache line of one's own. Without -mprfchw compilers only ask for a shared one, and the
// write that follows has to wait for the other threads' caches again.
inline void prefetch_to_write(std::uintptr_t address) {
#if defined(__x86_64__)
  asm volatile("prefetchw (%0)" : : "r"(address));  // nothing happens where it is not known
#else
  __builtin_prefetch(reinterpret_cast<void*>(address), 1);
#endif
}

// Has malloc's result where it is returned from the start; compilers have its list's number there,
// and move the result at the end.
inline void keep_where_results_are(std::uintptr_t& block) {
#if defined(__x86_64__)
  asm("" : "+a"(block));
#else
  (void)block;
#endif
}

inline std::uint64_t* words_of(std::uintptr_t block) {
  return reinterpret_cast<std::uint64_t*>(block);
}

// The block behind a freed one, or 0 behind the last.
inline std::uintptr_t next_of(std::uintptr_t block) {
  return words_of(block)[0];
}

// Nine times an address has more bits than addresses have. One instruction.
inline std::uint64_t mark_of(std::uintptr_t block) {
  return block * 9 + 0x5BD1E995;
}

// The block counts as freed from now on.
inline void set_next(std::uintptr_t block, std::uintptr_t next) {
  words_of(block)[0] = next;
  words_of(block)[1] = mark_of(block);
}

inline bool is_freed(std::uintptr_t block) {
  return words_of(block)[1] == mark_of(block);
}

inline void clear_mark(std::uintptr_t block) {
  words_of(block)[1] = 0;
}

}  // namespace plimsoll::heap
