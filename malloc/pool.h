// A thread's pool of small blocks: one list per size class, and the pages behind them.
//
//   malloc  pops the class's list. Empty: the current page's freed blocks become the list; or more
//           of the page is carved; or another page with free blocks becomes current; or a page
//           comes from the heap (page_source.h).
//   free    of a block of an own page pushes it on the list that its page names (page.h).
//   free    of another thread's block sends it home, in a parcel with others of the same owner
//           (remote_list.h). A parcel goes off when it is full or stands for 16 KiB, before the
//           pool takes a page, now and then when it refills a list, and when the thread ends.
//
// Exchange. Where threads free each other's blocks as fast as they allocate, freed blocks of a
// class go to its magazine, whoever owns them, and are handed out again (magazine.h). The thread's
// own blocks are then in other caches as often as the others', and free() must not wait for them
// either. So pages of such a class are set apart: the page map does not name their owner any more,
// and free() takes the way of a remote block, which looks at the page.
//
// Waiting. A freed block's mark tells whether it was freed before (page.h), but the block of a
// large heap is often in nobody's cache, and a test on it stalls free() for as long as that takes:
// half of the time of bench/malloc's batches. So a block is only prefetched when it is freed, waits
// in a ring, and goes to its list when kWaiting others were freed; one that goes to a magazine,
// which may be farther away, when the magazine becomes the list. Of a block that is sent home the
// owner makes the test. malloc prefetches the next block of the list for the same reason. While the
// pool's pages are carved to less than kCachedBytes, which stay in a core's own caches, blocks go
// to their lists at once: the ring would cost a tenth of the time of bursts. That is decided for
// the whole pool, lest free() has a branch that nobody can predict. A double free is therefore
// reported by the same or a later call of the thread, or of the owner, or at exit.
//
// Fresh pages are carved 4 KiB at a time, and freed blocks, those that wait too, are used before
// more is carved: a program that needs three blocks of a size touches one kernel page.
//
// Life of a pool. Pools are never destroyed. When a thread ends its pool goes idle, and the next
// thread without a pool takes it over. The first kWarmPools idle ones keep their pages as they are,
// the others give back pages that are wholly free. A block of an idle pool may be freed by anyone,
// as a remote free. Before a thread takes a new segment's worth of pages it takes home what was
// freed to idle pools, so that memory of threads that are gone comes back.
//
// Threads: a pool is used by its thread alone, except `remote` and the states of its parcels. The
// common pool (for threads whose own is gone, and for checking, see check_mode.h) is used under
// common_lock. Idle pools are used under pools_lock: a thread that starts waits for one that is
// being looked through, lest pools pile up. Lock order: common_lock, pools_lock, heap_lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel.h"
#include "magazine.h"
#include "page.h"
#include "remote_list.h"

namespace plimsoll::heap {

// Counted by one thread, read by any.
class Counter {
 public:
  void add(std::uint64_t n) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

inline constexpr std::size_t kCarveBytes = 4096;  // of a fresh page, linked at a time

struct Pool {
  static constexpr unsigned kOwners = 16;  // that blocks are collected for at a time
  static constexpr unsigned kParcels = 32;
  static constexpr std::size_t kSentBytes = 16 << 10;
  static constexpr unsigned kRefillsBetweenFlushes = 64;
  static constexpr std::uint32_t kFewBlocks = 192;  // see Page::home

  std::uintptr_t list[kClasses] = {};  // heads; 0 when empty

  static constexpr unsigned kWaiting = 32;
  static constexpr std::size_t kCachedBytes = 1 << 20;
  struct Waiting {
    Page* page = nullptr;  // null: no block
    std::uintptr_t block = 0;
  };
  bool blocks_wait = false;        // kCachedBytes or more are carved
  std::size_t oldest_waiting = 0;  // the oldest's distance from the ring's begin, in bytes
  std::size_t carved_bytes = 0;    // of the pool's pages
  Waiting waiting[kWaiting] = {};  // a ring

  Page* current[kClasses] = {};
  Page* available[kClasses] = {};
  // Blocks of another pool's pages that have not been sent yet.
  struct Outgoing {
    Pool* to = nullptr;
    std::uintptr_t first = 0;  // nodes, linked
    std::uintptr_t last = 0;
    std::uintptr_t* next_place = nullptr;  // for an address, in the last node
    std::uint32_t places = 0;              // left in it
    std::uint32_t bytes = 0;
    std::uint32_t count = 0;  // blocks, if all places were used
  };
  Outgoing outgoing[kOwners];
  using PoolParcel = Parcel<Atomic, 62>;  // 512 bytes
  PoolParcel* parcels = nullptr;          // kParcels, or null when there was no memory
  unsigned next_parcel = 0;
  Magazine magazines[kClasses];
  unsigned refills = 0;
  Counter handed_out;  // blocks moved to lists
  Counter remote_frees;
  unsigned pages_taken = 0;
  bool is_working = false;  // a thread's, and not one of the two empty ones (threads.h)
  Pool* next = nullptr;     // idle pools
  Pool* next_of_all = nullptr;

  alignas(64) RemoteList<Atomic> remote;

  // A block of the class, or null when its list is empty.
  void* try_pop(std::size_t size_class) {
    std::uintptr_t block = list[size_class];
    keep_where_results_are(block);
    if (block == 0) [[unlikely]]
      return nullptr;
    const std::uintptr_t after = next_of(block);
    prefetch_to_write(after);
    list[size_class] = after;
    clear_mark(block);
    return reinterpret_cast<void*>(block);
  }
  // A block of the class, or null when there is no memory.
  void* pop(unsigned size_class) {
    void* block = try_pop(size_class);
    return block != nullptr ? block : refill(size_class);
  }

  // What can be had when there is nothing else to do: what is in the magazine, or what the current
  // page's frees left; or null.
  void* try_swap(unsigned size_class) {
    if (void* block = try_exchanged(size_class)) return block;
    Page* page = current[size_class];
    if (page == nullptr || page->freed == 0 || !remote.empty() ||
        ++refills % kRefillsBetweenFlushes == 0) {
      return nullptr;
    }
    return take_list(page);
  }

  // Frees a block of an own page.
  void push(Page* page, std::uintptr_t block) {
    if (blocks_wait) [[unlikely]]
      return wait(page, block);
    settle(page, block);
  }
  // Frees a block of another pool's page, or of an own one that was set apart.
  void push_elsewhere(Page* page, std::uintptr_t block) {
    const bool own = page->owner.load(std::memory_order_relaxed) == this;
    Magazine& magazine = magazines[page->size_class];
    magazine.freed += own ? 0 : 1;
    if (!magazine.is_exchanged()) return push_unexchanged(page, block, own);
    prefetch_to_write(block);
    magazine.blocks[magazine.count++] = block;
    if (magazine.count == magazine.room) [[unlikely]]
      make_room(page->size_class);
  }
  // The blocks that wait go to their lists now, those in magazines home.
  void settle_waiting();
  void settle_waiting_own();
  // What was collected for other pools is sent now.
  void send_all();
  // Takes home what other threads freed.
  void collect();
  // Gives back pages of which every block is free.
  void release_free_pages();
  // Brings handed_out up to date.
  void count_handed_out();
  [[noreturn]] static void refuse_double_free(std::uintptr_t block);
  // The same, for free(): a call that returns can be a jump, and free() then saves no register.
  static void refuse_settled(std::uintptr_t block);
  static void require_not_freed(std::uintptr_t block) {
    if (is_freed(block)) [[unlikely]]
      refuse_double_free(block);
  }

 private:
  // The block waits, and the one that waited longest goes to its list.
  void wait(Page* page, std::uintptr_t block) {
    prefetch_to_write(block);
    auto& place = *reinterpret_cast<Waiting*>(reinterpret_cast<char*>(waiting) + oldest_waiting);
    const Waiting oldest = place;
    place = {page, block};
    oldest_waiting = (oldest_waiting + sizeof(Waiting)) % sizeof(waiting);
    if (oldest.page != nullptr) [[likely]]
      settle(oldest.page, oldest.block);
  }
  void give_back(Page* page);
  void settle(Page* page, std::uintptr_t block) {
    if (is_freed(block)) [[unlikely]]
      return refuse_settled(block);
    push_own(page, block);
  }
  void push_own(Page* page, std::uintptr_t block) {
    std::uintptr_t& home = *page->home;
    set_next(block, home);
    home = block;
    if (--page->countdown == 0) [[unlikely]]
      counted_down(page);
  }
  void push_unexchanged(Page* page, std::uintptr_t block, bool own);
  void* take_magazine(unsigned size_class);
  void string_magazine(unsigned size_class);
  void make_room(unsigned size_class);
  // From the magazine, or the list whose place it took; or null.
  void* try_exchanged(unsigned size_class) {
    Magazine& magazine = magazines[size_class];
    if (magazine.count > 0) return take_magazine(size_class);
    if (magazine.rest == 0) return nullptr;
    list[size_class] = magazine.rest;
    magazine.rest = 0;
    magazine.page_gave_list = true;
    return try_pop(size_class);
  }
  void spill(Magazine& magazine, unsigned count);
  void go_home(std::uintptr_t block);
  void note_refill(unsigned size_class, std::uint64_t blocks) {
    magazines[size_class].note_refill(static_cast<std::uint32_t>(blocks),
                                      kMagazineBlocks[size_class]);
  }
  bool is_exchanged(const Page* page) const { return magazines[page->size_class].is_exchanged(); }
  void set_apart(Page* page, bool apart);
  void send(Page* page, std::uintptr_t block);
  void add_node(Outgoing& out, Page* page, std::uintptr_t block);
  void send_off(Outgoing& out);
  void send_parcels();
  // Parcels and blocks that carry others.
  static bool is_parcel(std::uintptr_t node) { return words_of(node)[0] == PoolParcel::kUnderWay; }
  static std::uintptr_t next_node_of(std::uintptr_t node) { return *link_of(node); }
  static std::uint64_t* link_of(std::uintptr_t node) { return words_of(node) + is_parcel(node); }
  void* refill(unsigned size_class);
  void* take_list(Page* page) {
    const bool exchanged = is_exchanged(page);
    if (exchanged && !page->apart) set_apart(page, true);
    magazines[page->size_class].page_gave_list = exchanged;
    const std::uint64_t before = handed_out.value();
    count_handed_out(page);
    note_refill(page->size_class, handed_out.value() - before);
    std::uintptr_t& head = list[page->size_class];
    head = page->freed;
    page->freed = 0;
    page->home = !exchanged && page->carved < kFewBlocks ? &head : &page->freed;
    return try_pop(page->size_class);
  }
  // Of a current page: what was freed since it was counted last, and has been handed out again or
  // will be next.
  void count_handed_out(Page* page) {
    handed_out.add(std::uint64_t{Page::kMostFrees - page->countdown} + page->sleeping);
    page->countdown = Page::kMostFrees;
    page->sleeping = 0;
  }
  void carve(Page* page);
  void put_to_sleep(Page* page);
  void counted_down(Page* page);
  static unsigned places_of(const Page* page);
  void take_home(const std::uintptr_t* blocks, unsigned most);
  void take_back(Page* page, std::uintptr_t first, std::uintptr_t last, unsigned count);
  static Page* page_of(std::uintptr_t block);
  Page* own_page_of(std::uintptr_t block) const;
  void make_available(Page* page);
  void remove_available(Page* page);
};

// Sends a single block home from a thread that has no pool.
void send_alone(Page* page, std::uintptr_t block);

// An idle pool, or a new one. Null when there is no memory.
Pool* take_pool();
void retire_pool(Pool* pool);
// Takes home what was freed to pools that no thread has.
void collect_idle_pools();
// The same, and gives back their free pages.
void release_idle_pools();

extern constinit Lock pools_lock;
extern constinit Lock common_lock;
Pool* common_pool();  // null when there is no memory; hold common_lock

// Sums over all pools, of numbers that their threads may be changing.
struct PoolTotals {
  std::uint64_t pools = 0;
  std::uint64_t blocks = 0;
  std::uint64_t remote_frees = 0;
};
PoolTotals pool_totals();

}  // namespace plimsoll::heap
