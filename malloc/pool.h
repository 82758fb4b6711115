// A thread's pool of small blocks: one list per size class, and the pages behind them.
//
//   malloc  pops the class's list. Empty: the current page's freed blocks become the list; or more
//           of the page is carved; or
//           another page with free blocks becomes current; or a page comes from the heap
//           (page_source.h).
//   free    of a block of an own page pushes it on the page's `freed` list. Blocks go back to their
//           page, not to the class's
//           list: pages empty out and can be given back, and blocks allocated together stay
//           together.
//   free    of another thread's block goes into a small table of chains, one chain per page; a
//           chain that is long enough,
//           or whose slot is needed, is pushed to its page in one step (remote_list.h). A table of
//           64 chains of at
//           most 4 KiB bounds what is under way; it is emptied before the pool takes a page, now
//           and then when it refills
//           a list, and when the thread ends.
//
// Waiting. A freed block's first word tells whether it was freed before (page.h), but it is often
// in nobody's cache, and a test on it stalls free() for as long as that takes: a third of the time
// of the pareto row. So a block is only prefetched when it is freed, and goes to its list with the
// thread's next free. A double free is therefore reported by the same or the next free of the
// thread, or at exit.
//
// Fresh pages are carved 4 KiB at a time, and freed blocks are used before more is carved: a
// program that needs three blocks of a size touches one kernel page.
//
// Life of a pool. Pools are never destroyed. When a thread ends its pool goes idle, pages and all,
// and the next thread without a pool takes it over. A block of an idle pool may be freed by anyone,
// as a remote free. Before a thread takes a new segment's worth of pages it takes home what was
// freed to idle pools, so that memory of threads that are gone comes back.
//
// Threads: a pool is used by its thread alone, except `pending`. The common pool (for threads whose
// own is gone, and for checking, see check_mode.h) is used under common_lock. Lock order:
// common_lock, then heap_lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernel.h"
#include "page.h"

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

struct Pool {
  static constexpr unsigned kChains = 64;

  std::uint64_t key = 0;
  std::uintptr_t list[kClasses];  // heads; odd when empty

  struct Waiting {
    Page* page = nullptr;
    std::uintptr_t block = 0;
  };
  Waiting waiting;
  Waiting waiting_remote;

  Page* current[kClasses] = {};
  Page* available[kClasses] = {};
  struct {
    Page* page = nullptr;
    std::uintptr_t head = 0;
    std::uintptr_t tail = 0;
    std::uint32_t count = 0;
  } chains[kChains];
  unsigned refills = 0;
  Counter handed_out;  // blocks moved to lists
  Counter remote_frees;
  unsigned pages_taken = 0;
  Pool* next = nullptr;  // idle pools
  Pool* next_of_all = nullptr;

  alignas(64) PendingStack<Page, Atomic> pending;

  constexpr Pool() {
    for (auto& head : list) head = 1;
  }

  // Whether it is a thread's, and not one of the two empty ones (threads.h).
  bool is_working() const { return key != 0; }

  // A block of the class, or null when its list is empty.
  void* try_pop(std::size_t size_class) {
    const std::uintptr_t block = list[size_class];
    if (is_end(block)) [[unlikely]]
      return nullptr;
    list[size_class] = next_of(block, key);
    *reinterpret_cast<std::uint64_t*>(block) = 0;
    return reinterpret_cast<void*>(block);
  }
  // A block of the class, or null when there is no memory.
  void* pop(unsigned size_class) {
    void* block = try_pop(size_class);
    return block != nullptr ? block : refill(size_class);
  }

  // Frees a block of an own page: the block waits, and the one that waited before goes home.
  void push(Page* page, std::uintptr_t block) {
    __builtin_prefetch(reinterpret_cast<void*>(block), 1);
    Page* const page_before = waiting.page;
    const std::uintptr_t before = waiting.block;
    waiting = {page, block};
    if (page_before != nullptr) [[likely]]
      settle(page_before, before);
  }
  // The same for a block of another pool's page.
  void push_remote(Page* page, std::uintptr_t block) {
    __builtin_prefetch(reinterpret_cast<void*>(block), 1);
    const Waiting before = waiting_remote;
    waiting_remote = {page, block};
    if (before.page != nullptr) [[likely]]
      settle_remote(before.page, before.block);
  }
  // The blocks that wait go home now.
  void settle_waiting();
  void flush_chains();
  // Takes home what other threads freed.
  void collect();
  // Gives back pages of which every block is free.
  void release_free_pages();

 private:
  void settle(Page* page, std::uintptr_t block) {
    if (looks_freed(block, key)) [[unlikely]]
      return settle_suspect(page, block);
    push_own(page, block);
  }
  void push_own(Page* page, std::uintptr_t block) {
    set_next(block, page->freed, key);
    page->freed = block;
    if (--page->countdown == 0) [[unlikely]]
      counted_down(page);
  }
  void settle_remote(Page* page, std::uintptr_t block);
  void settle_suspect(Page* page, std::uintptr_t block);
  void* refill(unsigned size_class);
  void* take_list(Page* page);
  void carve(Page* page);
  void put_to_sleep(Page* page);
  void counted_down(Page* page);
  void take_back(Page* page, Chain chain);
  void make_available(Page* page);
  void remove_available(Page* page);
  [[noreturn]] static void refuse_double_free(std::uintptr_t block);
};

// Pushes a single block to its page from a thread that has no pool.
void push_remote_alone(Page* page, std::uintptr_t block);

// An idle pool, or a new one. Null when there is no memory.
Pool* take_pool();
void retire_pool(Pool* pool);
// Takes home what was freed to pools that no thread has.
void collect_idle_pools();

extern constinit Lock common_lock;
Pool* common_pool();  // null when there is no memory; hold common_lock

// Sums over all pools, of numbers that their threads may be changing.
struct PoolTotals {
  std::uint64_t pools = 0;
  std::uint64_t blocks = 0;
  std::uint64_t remote_frees = 0;
};
PoolTotals pool_totals();

std::uint64_t link_key();

}  // namespace plimsoll::heap
