// A page: 64 or 256 KiB of blocks of one size, owned by one thread's pool.
//
// Its blocks are in one of four places: with the program; in the pool's list for the class, from
// which malloc pops; in `freed`, where the owner's frees go; or in `remote`, where those of other
// threads go. The first three are linked through the blocks themselves.
//
// Counting. malloc does not count: when a pool takes a page's `freed` list, all blocks on it count
// as outstanding from then on. free counts `countdown` to zero, and what zero means depends on the
// state:
//
//   current    the pool's list holds its blocks; zero: everything came back, nothing to do
//   asleep     nothing free in it; zero: enough came back to be worth allocating from (a few
//              blocks, not the first,
//              so that a page does not go in and out of the list with every free)
//   available  in the pool's list of pages with free blocks; zero: wholly free, the page goes back
//              to the heap
//
// So one decrement and one test serve for all three, and blocks outstanding = countdown + sleeping.
//
// Links. A freed block's first word holds the next block's address, XORed with a key of the
// process. The end of a list is an odd address inside the page. So a block that is on a list is
// recognisable: its word, XORed with the key, agrees with its own address in the upper bits, which
// other data does by chance once in 2^46. free() makes that test; a hit is verified by walking the
// lists, and aborts as a double free. malloc clears the word, lest a block that was never written
// looks freed.
#pragma once

#include <atomic>
#include <cstdint>

#include "page_map.h"
#include "remote_list.h"

namespace plimsoll::heap {

template <typename T>
using Atomic = std::atomic<T>;

// Pages lie within an aligned window of 256 KiB.
inline constexpr unsigned kPageWindowBits = 18;

enum class PageState : std::uint8_t { kCurrent, kAsleep, kAvailable };

struct alignas(128) Page : Descriptor {
  PageState state = PageState::kCurrent;
  std::uint8_t granules = 1;
  std::uint8_t size_class = 0;
  std::uint32_t countdown = 0;
  std::uintptr_t freed = 0;  // head; odd when empty
  char* start = nullptr;
  std::uint32_t block = 0;     // bytes
  std::uint32_t capacity = 0;  // blocks
  std::uint32_t carved = 0;    // blocks that were ever linked; those behind were never touched
  std::uint32_t sleeping = 0;
  Page* next = nullptr;  // among the pool's available pages of the class
  Page* previous = nullptr;

  alignas(64) RemoteList<Atomic> remote;  // other threads' line
  Page* next_pending = nullptr;

  std::uintptr_t end_mark() const { return reinterpret_cast<std::uintptr_t>(start) | 1; }
  std::size_t bytes() const { return granules * kGranule; }
};

static_assert(sizeof(Page) == 128, "the owner's line and the other threads'");

inline bool is_end(std::uintptr_t head) {
  return (head & 1) != 0;
}

inline std::uintptr_t next_of(std::uintptr_t block, std::uint64_t key) {
  return *reinterpret_cast<std::uint64_t*>(block) ^ key;
}

inline void set_next(std::uintptr_t block, std::uintptr_t next, std::uint64_t key) {
  *reinterpret_cast<std::uint64_t*>(block) = next ^ key;
}

// Whether a block's first word looks like a link of a free list of its page.
inline bool looks_freed(std::uintptr_t block, std::uint64_t key) {
  return ((next_of(block, key) ^ block) >> kPageWindowBits) == 0;
}

}  // namespace plimsoll::heap
