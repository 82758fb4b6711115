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
//              blocks, not the first,
//              so that a page does not go in and out of the list with every free)
//   available  in the pool's list of pages with free blocks; zero: wholly free, the page goes back
//              to the heap
//
// So one decrement and one test serve for all three. A page stops being current when none of its
// blocks is left on a list, so that all count as outstanding: countdown + sleeping.
//
// Two lines of cache: what other threads read, and what the owner writes with every free.
//
// Links. A freed block's first word holds the next block's address, which has 47 bits, and in the
// 17 above them the lowest of its own address, all XORed with a key of the process:
//
//   63           47 46                          4 3   0
//  +---------------+-----------------------------+-----+
//  | own, 20 to 4  |   next, 46 to 4             |  0  |   XOR key; next is 0 at the end of a list
//  +---------------+-----------------------------+-----+
//
// So a block that is on a list is recognisable. free() compares the upper 17 bits, which other data
// has by chance once in 2^17; then it looks closer (is_freed): the rest must be a block of the same
// page or the end, which makes it once in 2^52 or less, and is aborted as a double free. Where a
// block is followed by one of another page (magazine.h), its first two words add up to the key,
// which says once in 2^64 that they are a link: the second word stays when the block is used, and
// must not vouch for whatever the program writes into the first. malloc clears the first, lest a
// block that was never written looks freed.
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

inline std::uint64_t* words_of(std::uintptr_t block) {
  return reinterpret_cast<std::uint64_t*>(block);
}

// What the link of this block is XORed with.
inline std::uint64_t link_mask(std::uintptr_t block, std::uint64_t key) {
  constexpr unsigned kOwnBits = 47 - 4;  // where the block's lowest bits go
  return key ^ block << kOwnBits;
}

// The block behind a freed one, or 0 behind the last.
inline std::uintptr_t next_of(std::uintptr_t block, std::uint64_t key) {
  return words_of(block)[0] ^ link_mask(block, key);
}

// The next block is of the same page, or there is none.
inline void set_next(std::uintptr_t block, std::uintptr_t next, std::uint64_t key) {
  words_of(block)[0] = next ^ link_mask(block, key);
}

// The next one may be anywhere.
inline void set_next_elsewhere(std::uintptr_t block, std::uintptr_t next, std::uint64_t key) {
  set_next(block, next, key);
  words_of(block)[1] = key - words_of(block)[0];
}

// A block on its way home that carries others (remote_list.h): it has a link that no list has, and
// its second word leads to the next node. That is masked with the key's complement: with the key
// itself, the word of the last node would be the key, and add up to it with a first word of 0.
inline constexpr std::uintptr_t kCarrier = 2;

inline std::uintptr_t next_node_of(std::uintptr_t node, std::uint64_t key) {
  return words_of(node)[1] ^ ~key;
}

inline void set_next_node(std::uintptr_t node, std::uintptr_t next_node, std::uint64_t key) {
  words_of(node)[1] = next_node ^ ~key;
}

inline void clear_link(std::uintptr_t block) {
  words_of(block)[0] = 0;
}

// Whether a block's first word may be the link of a freed block.
inline bool looks_freed(std::uintptr_t block, std::uint64_t key) {
  return next_of(block, key) >> 47 == 0;
}

// Whether it is one that this block can have.
inline bool is_freed(const Page* page, std::uintptr_t block, std::uint64_t key) {
  if (!looks_freed(block, key)) return false;
  const std::uintptr_t next = next_of(block, key);
  const std::uintptr_t at = next - reinterpret_cast<std::uintptr_t>(page->start);
  const bool here = at < std::size_t{page->capacity} * page->block && at % page->block == 0;
  return next == 0 || next == kCarrier || here || words_of(block)[0] + words_of(block)[1] == key;
}

}  // namespace plimsoll::heap
